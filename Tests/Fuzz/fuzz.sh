#!/bin/sh
# Fuzzes the parsers of text that servers and users give: libFuzzer with the address sanitizer, both from the
# toolchain. FerryCore, the head parser, the JSON coder and the harness become one module and one binary.
#   fuzz.sh [SECONDS [TARGET...]]        default: 10 seconds for each target, two targets at a time
# Seeds are Tests/Fuzz/corpus/TARGET, which is only read. What is found goes to .build/fuzz: new inputs to
# corpus/TARGET (used again by the next run), the output to TARGET.log, an input that breaks a rule to
# findings/TARGET-*. To repeat one: FUZZ_TARGET=TARGET .build/fuzz/fuzz FILE
# Exit status: 0 nothing found, 1 a finding or a target that did not run, 2 the harness does not compile.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
out=$project/.build/fuzz
seconds=${1:-10}
[ $# -eq 0 ] || shift
[ $# -gt 0 ] || set -- $(ls "$here/corpus")
mkdir -p "$out/findings"

build() {
    json=$project/Sources/FerryControl/ControlJSON.swift
    set -- "$project"/Sources/FerryCore/*/*.swift "$project/Sources/FerryHTTP/HeadParser.swift" "$json" \
        "$here"/*.swift
    [ ! -x "$out/fuzz" ] || [ -n "$(find "$@" "$here/fuzz.sh" -newer "$out/fuzz")" ] || return 0
    # One module has nothing to import from itself.
    grep -v '^import FerryCore$' "$project/Sources/FerryHTTP/HeadParser.swift" > "$out/HeadParser.swift"
    swiftc -parse-as-library -sanitize=fuzzer,address -O -g -module-name FerryFuzz -swift-version 6 \
        "$project"/Sources/FerryCore/*/*.swift "$out/HeadParser.swift" "$json" "$here"/*.swift -o "$out/fuzz" \
        2> "$out/build.log" || { cat "$out/build.log" >&2; exit 2; }
}

# Fuzzes one target and prints its line.
fuzz() {
    target=$1 log=$out/$1.log status=0
    [ -d "$here/corpus/$target" ] || { echo "$target: no such target" >&2; return 1; }
    mkdir -p "$out/corpus/$target"
    FUZZ_TARGET=$target "$out/fuzz" -max_total_time="$seconds" -max_len=4096 -timeout=5 -rss_limit_mb=1024 \
        -detect_leaks=0 -print_final_stats=1 -artifact_prefix="$out/findings/$target-" \
        "$out/corpus/$target" "$here/corpus/$target" > "$log" 2>&1 || status=$?
    stat() { sed -n "s/^stat::$1: *//p" "$log"; }
    coverage=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
    printf '%-20s %9s runs %7s/s %5s edges %4s new inputs\n' "$target" "$(stat number_of_executed_units)" \
        "$(stat average_exec_per_sec)" "${coverage:-0}" "$(stat new_units_added)"
    [ "$status" -ne 0 ] || return 0
    grep -m 1 '^finding: ' "$log" >&2 || echo "$target: failed, see $log" >&2
    sed -n 's/.*Test unit written to /    /p' "$log" >&2
    return 1
}

# Fuzzes one target after the other.
lane() {
    failed=0
    for each; do fuzz "$each" || failed=1; done
    return $failed
}

build
first='' second=''
while [ $# -gt 0 ]; do
    first="$first $1" second="$second ${2:-}"
    shift
    [ $# -eq 0 ] || shift
done
result=0
lane $first & one=$!
lane $second & two=$!
wait $one || result=1
wait $two || result=1
exit $result
