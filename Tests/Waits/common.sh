# What both labs use; to be sourced. Needs: here, programs. Gives a folder $lab that goes at the end, with all processes
# that were started by `run`.
lab=$(mktemp -d)
pids=()
passed=0
ok() {
    passed=$((passed + 1))
    echo "ok $passed - $*"
}
die() {
    echo "not ok - $*"
    ferry list --all 2>&1 | tail -n 20 || true
    tail -n 20 "$lab"/*.log 2>/dev/null || true
    exit 1
}
run() { # COMMAND...
    "$@" >>"$lab/run.log" 2>&1 &
    pids+=($!)
}
end() { # the processes; those of a namespace are children of these
    local pid
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    for pid in "${pids[@]}"; do wait "$pid" 2>/dev/null || true; done
    pids=()
}
ferry() {
    local command=$1
    shift
    "$programs/ferry" "$command" --state-dir "$lab/state" "$@"
}
add() { ferry add --allow-http "$@" 2>>"$lab/run.log" || die "cannot add: $*"; }
field() { # JOB FIELD — a word or number of its JSON
    ferry show "$1" --json | sed -E "s/.*[{,]\"$2\" *: *(\"([^\"]*)\"|([^,}]*)).*/\2\3/"
}
shows() { # JOB TEXT... — all of them in what a person sees
    local text part
    text=$(ferry show "$1")
    shift
    for part in "$@"; do [[ $text == *"$part"* ]] || return 1; done
}
logged() { # JOB TEXT — in what it has been through
    [[ $(ferry log "$1") == *"$2"* ]]
}
has_state() { [ "$(field "$1" state)" = "$2" ]; }
until_() { # SECONDS WHAT COMMAND...
    local end=$((SECONDS + $1)) what=$2
    shift 2
    until "$@"; do
        ((SECONDS < end)) || die "$what"
        sleep 0.2
    done
}
takes() { # ADDRESS PORT
    (exec 3<>"/dev/tcp/$1/$2") 2>/dev/null
}
answers() { ferry list >/dev/null 2>&1; }
is_file() { # PATH MIB
    [ "$(sha256sum <"$1" | cut -d' ' -f1)" = "$(python3 "$here/server.py" sum "$2")" ] || die "$1 is not the file"
}
