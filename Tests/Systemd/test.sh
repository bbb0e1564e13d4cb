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
# Tries a command until it succeeds, for a minute or more.
until_() { # WHAT COMMAND...
    local what=$1
    shift
    for _ in $(seq 600); do "$@" && return; sleep 0.1; done
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
folder() { case $1 in system) echo /srv/files/new ;; user) echo /home/lab/files ;; esac; }
show() { ctl "$1" show ferryd -P "$2"; }
is() { [ "$(show "$1" "$2" 2>/dev/null)" = "$3" ]; }
field() { # system|user JOB FIELD
    ferry "$1" show "$2" --json 2>/dev/null | sed -n "s/.*\"$3\":\"*\([a-z0-9-]*\).*/\1/p"
}
has_state() { [ "$(field "$1" "$2" state 2>/dev/null)" = "$3" ]; }
# Whether a job has more bytes than these.
grows() { # system|user JOB BYTES
    local bytes
    bytes=$(field "$1" "$2" bytes_done 2>/dev/null) && [ "$bytes" -gt "$3" ]
}
# Whether the journal of this boot has a line; -q would end grep before journalctl, which pipefail counts.
logged() { # TEXT [MATCH...]
    lab journalctl -b -o cat --no-pager "${@:2}" | grep -F -e "$1" >/dev/null
}
answers() { ferry "$1" list >/dev/null 2>&1; }
both_go_on() { # JOB WHAT
    local queue
    for queue in $queues; do
        until_ "$queue: is not active $2" is "$queue" ActiveState active
        until_ "$queue: does not answer $2" answers "$queue"
        until_ "$queue: the job does not go on $2" grows "$queue" "$1" "$(field "$queue" "$1" bytes_done)"
        has_state "$queue" "$1" running || die "$queue: the job is $(field "$queue" "$1" state) $2, too early"
    done
}
both_end() { # JOB NAME
    local queue
    for queue in $queues; do
        until_ "$queue: job $1 does not complete" has_state "$queue" "$1" completed
        [ "$(sha256sum <"$LAB_ROOT$(folder "$queue")/$2")" = "$(sha256sum <"$LAB_ROOT/srv/www/$2")" ] ||
            die "$queue: $2 has another digest"
        # One request for the whole; each further one went on where the file ended.
        [ "$(grep -c "^$queue /$2 200" "$LAB_ROOT/srv/www/log")" = 1 ] ||
            die "$queue: $2 was begun more than once: $(cat "$LAB_ROOT/srv/www/log")"
    done
}
both_add() { # JOB NAME
    local queue
    for queue in $queues; do
        [ "$(ferry "$queue" add -d "$(folder "$queue")" "http://127.0.0.1:8080/$2?q=$queue")" = "$1" ] ||
            die "$queue: job $1 cannot be added"
        until_ "$queue: job $1 does not begin" grows "$queue" "$1" 100000
    done
}
# A refusal: exit status and words.
refused() { # STATUS WORDS COMMAND...
    local status=$1 words=$2 said got=0
    shift 2
    said=$("$@" 2>&1) || got=$?
    [ "$got" = "$status" ] || die "$*: exit status $got, not $status: $said"
    has "$said" "$words"
}
# What is in the folders that install writes to.
inventory() {
    (cd "$LAB_ROOT" && find usr/local etc/systemd etc/fish root/.config root/.local home/lab -path '*/.local' -prune \
        -o -path home/lab/files -prune -o -print 2>/dev/null | sort) || true
}

lab_check
for program in ferry ferryd; do [ -x "$programs/$program" ] || { echo "$programs/$program is missing"; exit 1; }; done
LAB=$(mktemp -d /tmp/ferry-lab-XXXXXX)
LAB_BOUND=()
trap 'lab_end' EXIT
trap 'exit 1' INT TERM HUP
lab_make "$LAB" /var/lib/ferry /srv/files /home/lab
install -m 755 "$programs/ferry" "$programs/ferryd" "$LAB_ROOT/usr/local/bin/"

# A server that gives so little that nothing ends too early, and all it can once there is a file "fast".
mkdir -p "$LAB_ROOT/srv/www"
head -c 24M /dev/urandom >"$LAB_ROOT/srv/www/first"
head -c 8M /dev/urandom >"$LAB_ROOT/srv/www/second"
cat >"$LAB_ROOT/etc/lab-nginx.conf" <<'NGINX'
user root; pid /run/lab-nginx.pid; error_log stderr; events {}
http {
    log_format range '$arg_q $uri $status $http_range';
    access_log /srv/www/log range;
    server {
        listen 127.0.0.1:8080; root /srv/www; limit_rate 100k;
        if (-f /srv/www/fast) { set $limit_rate 1000m; }
    }
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

# Installing.
before=$(inventory)
refused 10 "ferry service install --system" lab ferry list --system
said=$(lab ferry service install --system --allow-dir /srv/files)
for word in "made user and group ferry" "wrote the unit /etc/systemd/system/ferryd.service" "man1/ferry.1" \
    "man8/ferryd.8" "completions/ferry" "site-functions/_ferry" "ferry.fish" "enabled ferryd" "started ferryd"; do
    has "$said" "$word"
done
[[ $said == *"cannot write in /srv/files"* ]] || die "nothing about the right to write: $said"
lab chgrp ferry /srv/files
lab chmod 2775 /srv/files
said=$(lab ferry service install --system --allow-dir "/srv/more of %u")
has "$said" "made the folder /srv/more of %u"
has "$(lab ferry service status --system --json)" '"running":true'
[ "$(lab stat -c '%U %G %a' /run/ferry/control.sock)" = "ferry ferry 660" ] || die "the socket's owner and mode"
ok "the machine's service is installed, brought up to date, and runs"
said=$(lab systemd-analyze verify --recursive-errors=yes /etc/systemd/system/ferryd.service 2>&1) || die "verify: $said"
[ -z "$said" ] || die "verify says: $said"
said=$(lab systemd-analyze security --threshold=20 --no-pager ferryd.service) || die "exposure: $said"
ok "systemd-analyze finds nothing wrong; ${said##*$'\n'}"

lab loginctl enable-linger lab
lab mkdir -p /home/lab/files
lab chown lab: /home/lab/files
until_ "there is no user manager" lab_as lab systemctl --user show-environment >"$LAB/said" 2>&1
said=$(lab_as lab ferry service install)
has "$said" "wrote the unit /home/lab/.config/systemd/user/ferryd.service"
has "$said" "started ferryd"
said=$(lab_as lab systemd-analyze --user verify --recursive-errors=yes /home/lab/.config/systemd/user/ferryd.service 2>&1) ||
    die "verify --user: $said"
[ -z "$said" ] || die "verify --user says: $said"
has "$(lab_as lab ferry service status --json)" '"on_demand":false'
[ -z "$(lab systemctl --failed --no-legend --plain)" ] || die "failed units: $(lab systemctl --failed --no-legend)"
ok "a lingering user's service is installed and runs"

said=$(lab ferry service install --linger)
has "$said" "turned lingering on"
has "$(lab ferry service uninstall)" "turned lingering off"
ok "lingering is turned on and off again"

# Who may, and where.
refused 10 "group ferry" lab_as lab ferry list --system
lab usermod -aG ferry lab
refused 1 "--allow-dir" ferry system add -d /srv http://127.0.0.1:8080/second
lab ln -s /srv /srv/files/link
refused 1 "--allow-dir" ferry system add -d /srv/files/link http://127.0.0.1:8080/second
lab mkdir /srv/files/shut
refused 1 "user ferry" ferry system add -d /srv/files/shut http://127.0.0.1:8080/second
ok "the machine's queue is for members, and writes in its folders alone"

# One transfer in each queue, through everything.
both_add 1 first
for queue in $queues; do
    SECONDS=0
    ctl "$queue" stop ferryd
    # Five are the service's own limit, the others are a slow machine's.
    [ "$SECONDS" -le 10 ] || die "$queue: the stop took $SECONDS s"
    is "$queue" Result success || die "$queue: the stop ended with $(show "$queue" Result)"
    ctl "$queue" start ferryd
done
both_go_on 1 "after stop and start"
ok "systemctl stop and start: the transfers go on"
for queue in $queues; do ctl "$queue" kill --kill-who=main -s KILL ferryd; done
for queue in $queues; do until_ "$queue: is not restarted" is "$queue" NRestarts 1; done
both_go_on 1 "after SIGKILL"
ok "SIGKILL: restarted, the transfers go on"
lab_reboot
both_go_on 1 "after the reboot"
ok "reboot: the transfers go on by themselves"
lab_power_cut
both_go_on 1 "after the power cut"
ok "power cut: the transfers go on by themselves"
touch "$LAB_ROOT/srv/www/fast"
for queue in $queues; do ctl "$queue" restart ferryd; done
both_end 1 first
ok "both files have the right digest, and were begun once"
rm "$LAB_ROOT/srv/www/fast"

# A loop that hangs.
both_add 2 second
for queue in $queues; do
    case $queue in system) etc=/run/systemd/system ;; user) etc=/run/user/$(lab id -u lab)/systemd/user ;; esac
    lab mkdir -p "$etc/ferryd.service.d"
    lab sh -c "printf '[Service]\nWatchdogSec=2s\nEnvironment=FERRY_HANG_POINT=loop\n' >$etc/ferryd.service.d/hang.conf"
    ctl "$queue" daemon-reload
    ctl "$queue" restart ferryd
    until_ "$queue: the watchdog does not bite" is "$queue" NRestarts 1
    until_ "$queue: no word of the watchdog" logged "ferryd.service: Watchdog timeout"
    lab rm "$etc/ferryd.service.d/hang.conf"
    ctl "$queue" daemon-reload
    touch "$LAB_ROOT/srv/www/fast"
    ctl "$queue" restart ferryd
done
both_end 2 second
ok "a loop that hangs: the watchdog restarts the service, the transfers end"

lab sh -c 'mkdir -p /etc/ferry && echo "{ limits: { running: 7 } }" >/etc/ferry/config.json5'
for queue in $queues; do
    pid=$(show "$queue" MainPID)
    ctl "$queue" reload ferryd
    until_ "$queue: does not reload" logged "event=reloaded" _PID="$pid"
    is "$queue" MainPID "$pid" || die "$queue: a reload is no restart"
    has "$(ferry "$queue" config | grep limits.running)" 7
done
ok "reload: the configuration is read again"

# Uninstalling.
said=$(lab ferry service uninstall --system)
has "$said" "removed /etc/systemd/system/ferryd.service"
has "$said" "kept the queue in /var/lib/ferry"
has "$(lab_as lab ferry service uninstall)" "kept the queue"
lab test -e /var/lib/ferry/jobs.db || die "the queue is gone"
has "$(lab ferry service uninstall --system)" "nothing is installed"
has "$(lab ferry service status --system --json)" '"running":false'
lab test ! -e /home/lab/.local/share || die "$(lab find /home/lab/.local/share) is left"
diff <(echo "$before") <(inventory) || die "uninstall does not restore what was"
ok "uninstall: all that install made is gone, the queue is kept"
echo "$passed passed, 0 failed"
