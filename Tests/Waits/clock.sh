#!/usr/bin/env bash
# Ferry and clocks that jump: a wall clock set by a year, forth and back, while jobs wait, and a machine that slept.
#
#   Tests/Waits/clock.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs a C compiler and python3, no rights. The machine's clocks are left alone: those of service and command are read
# through clock.c. Prints a line for each thing that holds; ends with 1 at the first that does not.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:-$here/../../.build/debug}" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"
trap 'end; rm -rf "$lab"' EXIT

mkdir -m 700 "$lab/state"
mkdir "$lab/files"
"$(command -v cc || command -v clang)" -O -shared -fPIC -o "$lab/clock.so" "$here/clock.c"
export FERRY_LAB_CLOCK=$lab/clock TZ=UTC XDG_CONFIG_HOME=$lab/config
mkfifo "$FERRY_LAB_CLOCK.bell"
exec 9<>"$FERRY_LAB_CLOCK.bell" # so that writing waits for nobody
wall=0
boot=0
put_clock() { python3 -c 'import struct, sys; sys.stdout.buffer.write(struct.pack("=qq", *(int(a) * 10**9 for a in sys.argv[1:])))' "$wall" "$boot" 1<>"$FERRY_LAB_CLOCK"; }
put_clock
set_clock() { # SECONDS by which it is put on
    wall=$((wall + $1))
    put_clock
    printf x >&9
}
sleeps() { # SECONDS
    boot=$((boot + $1))
    set_clock "$1"
}
ferry() {
    local command=$1
    shift
    LD_PRELOAD=$lab/clock.so "$programs/ferry" "$command" --state-dir "$lab/state" "$@"
}
start() {
    run env LD_PRELOAD="$lab/clock.so" "$programs/ferryd" --state-dir "$lab/state"
    service=${pids[-1]}
    until_ 60 "the service does not answer" answers
}
now() { echo $(($(date +%s) + wall)); }
at() { date --date "@$(($(now) + $1))" +%H:%M; } # SECONDS from now, by that clock
due() { date --date "$(field "$1" retry_at)" +%s; } # JOB
same() { # JOB BEFORE WHAT — its next try is what it was but for what the clock was set by
    local moved=$(($(due "$1") - $2 - wall))
    ((moved >= -1 && moved <= 1)) || die "$3: tried again $moved s later than it would have been"
}
waits() { # JOB REASON
    has_state "$1" waiting && [ "$(field "$1" reason)" = "$2" ]
}

mkdir -p "$lab/config/ferry"
echo '{ retry: { base: "20s", cap: "20s" } }' >"$lab/config/ferry/config.json5"
# 127.0.0.2 asks for a pause; the others go to 127.0.0.1.
port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run python3 "$here/server.py" 0.0.0.0 "$port" "$lab"
until_ 60 "the server does not answer" takes 127.0.0.1 "$port"
start
url() { echo "http://127.0.0.${2:-1}:$port/$1"; }
give() { add -d "$lab/files" "$@"; }

year=$((365 * 86400))
# Back-off is by chance: the first that is long enough to be seen.
for try in $(seq 20); do
    retried=$(give --deadline 3h "$(url "2/retried-$try?reset=500")")
    until_ 30 "a broken line is not waited for" eval '(($(field "$retried" attempt) >= 1)) && ! has_state "$retried" running'
    if waits "$retried" retry && (($(due "$retried") - $(now) > 12)); then break; fi
done
paused=$(give "$(url '1/paused?pause=15' 2)")
later=$(give --not-before +1h "$(url 1/later)")
never=$(give --not-before "$(date --date "@$(($(date +%s) + 2 * year))" --iso-8601=seconds)" "$(url 1/never)")
window=$(give --window "$(at 7200)-$(at 14400)" "$(url 1/window)")
waits "$retried" retry || die "no back-off is long enough"
until_ 30 "the pause of a host is not waited for" waits "$paused" host
until_ 30 "--not-before is not waited for" waits "$later" schedule
until_ 30 "the window is not waited for" waits "$window" schedule
retry=$(due "$retried")
host=$(due "$paused")
named=$(due "$never")
set_clock $((year + 3 * 3600))
until_ 30 "a time that has come by the new clock is not seen" has_state "$later" completed
until_ 30 "a window that is open by the new clock is not used" has_state "$window" completed
ok "a year on: what was to begin at a time, or in a window, has begun by the new clock"
same "$retried" "$retry" "the back-off"
same "$paused" "$host" "the host's pause"
waits "$never" schedule || die "a time that has not come is taken for one that has"
ok "a year on: back-off, deadline and the host's pause are as long as they were"

kill "$service"
wait "$service" 2>/dev/null || true
start
same "$retried" "$retry" "a restart: the back-off"
same "$paused" "$host" "a restart: the host's pause"
ok "a restart while they wait: the same times"

set_clock $((-2 * year))
until_ 30 "a clock set back is not noticed" eval '(($(due "$paused") < host))'
same "$retried" "$retry" "a year back: the back-off"
same "$paused" "$host" "a year back: the host's pause"
[ "$(due "$never")" = "$named" ] || die "a named time is another one when the clock was set back"
[ "$(grep -c "^/1/paused " "$lab/log")" = 1 ] || die "a host that asked for a pause was asked"
(($(date +%s) < host)) || die "this took too long to say anything"
ok "a year back: they go on waiting as long as they were to, and a named time stays that"
until_ 60 "the pause does not end" has_state "$paused" completed
(($(date +%s) >= host)) || die "the pause has ended early"
ok "the host is asked again when the time is over that it wanted"
until_ 60 "the back-off does not end" has_state "$retried" completed
is_file "$lab/files/retried-$try" 2

# Now the machine sleeps for an hour: one connection still brings bytes after it, one has died without a word.
alive=$(give --attempts 1 --deadline 3h "$(url '8/alive?rate=1000')")
dead=$(give --attempts 1 "$(url '2/dead?silent=1000' 3)")
soon=$(give --not-before +50m "$(url 1/soon)")
until_ 30 "nothing is transferred" eval '(($(field "$alive" bytes_done) > 1000000 && $(field "$dead" bytes_done) >= 1000000))'
sleeps 3600
until_ 30 "what was due while it slept does not begin" has_state "$soon" completed
until_ 30 "a dead connection is waited for" has_state "$dead" completed
is_file "$lab/files/dead" 2
[ "$(grep -c "^/2/dead " "$lab/log")" = 2 ] || die "$(cat "$lab/log")"
used=$(sed -n 's!^/1/soon !!p' "$lab/ports")
[ "$(grep -c " $used$" "$lab/ports")" = 1 ] || die "a connection from before it slept was used: $(cat "$lab/ports")"
ok "an hour of sleep: what was due begins, and what has died is asked for anew, no try spent"
until_ 30 "what goes on is not left to it" has_state "$alive" completed
is_file "$lab/files/alive" 8
[ "$(grep -c "^/8/alive " "$lab/log")" = 1 ] || die "a living transfer was ended: $(grep alive "$lab/log")"
ok "what still comes is left to it"
echo "the clock lab holds: $passed"
