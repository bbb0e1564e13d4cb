#!/usr/bin/env bash
# Ferry under a real systemd: the machine's service and a lingering user's, through stops, crashes, a reboot, a power
# cut, a hanging loop and a reload, with a transfer under way in both. About a minute.
#
#   Tests/Systemd/test.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root and the packages that README.md names. Prints a line for each thing that holds; ends with 1 at the first
# that does not. Nothing is left behind, and nothing of this machine is changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:-$here/../../.build/debug}" && pwd)
# shellcheck source-path=SCRIPTDIR
. "$here/lab.sh"

passed=0
ok() {
    passed=$((passed + 1))
    echo "ok $passed - $*"
}
die() {
    echo "not ok - $*"
    { lab journalctl -b -o short-monotonic --no-pager -u ferryd -n 20; lab journalctl -b -o short-monotonic \
        --no-pager _SYSTEMD_USER_UNIT=ferryd.service -n 20; } 2>/dev/null || true
    exit 1
}
# Tries a command until it succeeds, for half a minute.
until_() { # WHAT COMMAND...
    local what=$1
    shift
    for _ in $(seq 300); do "$@" && return; sleep 0.1; done
    die "$what"
}
has() { [[ $1 == *"$2"* ]] || die "'$2' is missing in: $1"; }

# Both queues, by the word that the tests call them.
queues="system user"
ferry() { # system|user ARGUMENT...
    local queue=$1 command=$2
    shift 2
    case $queue in
    system) lab_as lab ferry "$command" --system "$@" ;;
    user) lab_as lab ferry "$command" "$@" ;;
    esac
}
ctl() { # system|user ARGUMENT...
    local queue=$1
    shift
    case $queue in
    system) lab systemctl "$@" ;;
    user) lab_as lab systemctl --user "$@" ;;
    esac
}
folder() { case $1 in system) echo /srv/files ;; user) echo /home/lab/files ;; esac; }
show() { ctl "$1" show ferryd -P "$2"; }
is() { [ "$(show "$1" "$2" 2>/dev/null)" = "$3" ]; }
field() { # system|user JOB FIELD
    ferry "$1" show "$2" --json 2>/dev/null | python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$3"
}
has_state() { [ "$(field "$1" "$2" state 2>/dev/null)" = "$3" ]; }
# Whether a job has more bytes than at an earlier time.
grows() { # system|user JOB BYTES
    local bytes
    bytes=$(field "$1" "$2" bytes_done 2>/dev/null) && [ "$bytes" -gt "$3" ]
}
both_go_on() { # JOB WHAT
    local queue
    for queue in $queues; do
        until_ "$queue: is not active $2" is "$queue" ActiveState active
        until_ "$queue: does not go on $2: $(field "$queue" "$1" state 2>&1)" grows "$queue" "$1" "$(done_ "$queue")"
        until_ "$queue: does not grow $2" grows "$queue" "$1" "$(field "$queue" "$1" bytes_done)"
    done
}
# The bytes that a queue's job had when note was called.
note() { local queue; for queue in $queues; do field "$queue" "$1" bytes_done >"$LAB/done.$queue"; done; }
done_() { echo 0; }
both_end() { # JOB NAME
    local queue
    for queue in $queues; do
        until_ "$queue: job $1 does not complete" has_state "$queue" "$1" completed
        [ "$(sha256sum <"$LAB_ROOT$(folder "$queue")/$2")" = "$(sha256sum <"$LAB_ROOT/srv/www/$2")" ] ||
            die "$queue: $2 has another digest"
        # One request for the whole; every other one went on where the file ended.
        [ "$(grep -c "^/$2-$queue - 200" "$LAB_ROOT/srv/www/log")" = 1 ] ||
            die "$queue: $2 was fetched from its beginning again: $(cat "$LAB_ROOT/srv/www/log")"
    done
}

lab_check
for program in ferry ferryd; do [ -x "$programs/$program" ] || { echo "$programs/$program is missing"; exit 1; }; done
LAB=$(mktemp -d /tmp/ferry-lab-XXXXXX)
LAB_BOUND=()
trap 'lab_end' EXIT
trap 'exit 1' INT TERM HUP
lab_make "$LAB" /var/lib/ferry /srv/files /home/lab
install -m 755 "$programs/ferry" "$programs/ferryd" "$LAB_ROOT/usr/local/bin/"

# A server that gives 1 MiB a second, and its files.
mkdir -p "$LAB_ROOT/srv/www"
for name in first second third; do head -c 12M /dev/urandom >"$LAB_ROOT/srv/www/$name"; done
chmod -R a+rX "$LAB_ROOT/srv/www"
cat >"$LAB_ROOT/etc/lab-nginx.conf" <<'NGINX'
user root; pid /run/lab-nginx.pid; error_log stderr; events {}
http {
    log_format range '$uri$arg_q - $status $http_range $bytes_sent';
    access_log /srv/www/log range;
    server { listen 127.0.0.1:8080; root /srv/www; limit_rate 1m; rewrite ^/(\w+)-(\w+)$ /$1 break; }
}
NGINX
cat >"$LAB_ROOT/etc/systemd/system/lab-server.service" <<'UNIT'
[Service]
ExecStart=/usr/sbin/nginx -c /etc/lab-nginx.conf -g "daemon off;"
[Install]
WantedBy=multi-user.target
UNIT
systemctl --root="$LAB_ROOT" --quiet enable lab-server
lab_boot
lab useradd --home-dir /home/lab --no-create-home --shell /bin/bash lab
lab chown lab: /home/lab
ok "a real systemd is up: $(lab systemctl --version | head -1)"
