#!/usr/bin/env bash
# Ferry and quotas: a file system with room of which no more may be had, and a quota that is raised later.
#
#   Tests/Waits/quota.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root, loop devices, btrfs-progs, mount and python3: quotas of btrfs hold for root too, and need no kernel
# option. Prints a line for each thing that holds; ends with 1 at the first that does not. What it mounts is in a mount
# namespace of its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:-$here/../../.build/debug}" && pwd)
[ "$(id -u)" = 0 ] || { echo "not ok - the quota lab needs root"; exit 1; }
if [ -z "${FERRY_QUOTA_LAB:-}" ]; then
    FERRY_QUOTA_LAB=1 exec unshare --mount --propagation private "$0" "$programs"
fi
# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"
finish() {
    end
    umount "$lab/btrfs" 2>/dev/null || true
    rm -rf "$lab"
}
trap finish EXIT

mkdir "$lab/btrfs" "$lab/other" "$lab/state"
chmod 700 "$lab/state"
truncate -s 256M "$lab/btrfs.img"
mkfs.btrfs -q "$lab/btrfs.img" >/dev/null
mount -o loop "$lab/btrfs.img" "$lab/btrfs"
home=$lab/btrfs/home
btrfs -q subvolume create "$home"
btrfs -q quota enable "$lab/btrfs"
quota() { btrfs qgroup limit "$1" "$home"; }
quota 24M

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run python3 "$here/server.py" 127.0.0.1 "$port" "$lab"
run "$programs/ferryd" --state-dir "$lab/state"
until_ 60 "the server does not answer" takes 127.0.0.1 "$port"
until_ 60 "the service does not answer" answers
url() { echo "http://127.0.0.1:$port/$1"; }
requests() { grep -c "^/$1 " "$lab/log" || true; }

# Its length is not known: it finds out in the middle.
filling=$(add -d "$home" --attempts 1 "$(url "40/filling?chunked&rate=20000")")
until_ 90 "a quota that is used up is not waited for" has_state "$filling" waiting
shows "$filling" "reason:     disk" "disk quota used up on $lab/btrfs/home: 16.0 MiB needed" "next try:" || die "$(ferry show "$filling")"
(($(df --output=avail -B1 "$home" | tail -n 1) > 100 << 20)) || die "the file system itself is full"
kept=$(field "$filling" bytes_durable)
((kept > 16 << 20 && kept < 24 << 20)) || die "$kept bytes are kept of 24 MiB"
ok "the quota is used up: $(field "$filling" message), $((kept >> 20)) MiB kept"
# Its length is known, and nothing of it fits.
known=$(add -d "$home" --attempts 1 "$(url "30/known")")
until_ 60 "the next job does not wait" has_state "$known" waiting
shows "$known" "reason:     disk" "disk quota used up on $lab/btrfs/home: 30.0 MiB needed" || die "$(ferry show "$known")"
elsewhere=$(add -d "$lab/other" "$(url "5/elsewhere")")
until_ 60 "a job on another disk does not run" has_state "$elsewhere" completed
ok "another disk's job runs on"
# Nobody tells when there is room again: it is tried after 5, 10, 20 … seconds, and no try is spent.
until_ 60 "it is not tried again" eval '[ "$(field $filling attempt)" -ge 2 ]'
until_ 60 "it does not wait again" has_state "$filling" waiting
shows "$filling" "reason:     disk" || die "$(ferry show "$filling")"
ok "it waits on after $(field "$filling" attempt) tries, though it has one"
kept=$(field "$filling" bytes_durable)
quota 100M
began=$SECONDS
until_ 90 "a quota that was raised is not taken" has_state "$filling" completed
is_file "$home/filling" 40
[ "$(grep "^/40/filling " "$lab/log" | tail -n 1)" = "/40/filling $kept" ] || die "went on elsewhere: $(cat "$lab/log")"
ok "goes on by itself $((SECONDS - began)) s after it was raised, from byte $kept"
until_ 90 "the other one does not go on" has_state "$known" completed
is_file "$home/known" 30
ok "so does the other one"
# A person who has raised it need not wait.
quota 80M
last=$(add -d "$home" --attempts 1 "$(url "20/last")")
until_ 60 "the last job does not wait" has_state "$last" waiting
quota none
ferry retry "$last" >/dev/null
until_ 30 "retry does not end the wait" has_state "$last" completed
ok "ferry retry goes on at once"
echo "the quota lab holds: $passed"
