#!/usr/bin/env bash
# Ferry and disks that are full: a tmpfs and an ext4 of 64 MiB, a queue on a full disk, and room that comes later.
#
#   Tests/Waits/disk.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root, loop devices, e2fsprogs, mount and python3. Prints a line for each thing that holds; ends with 1 at the
# first that does not. What it mounts is in a mount namespace of its own.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:-$here/../../.build/debug}" && pwd)
[ "$(id -u)" = 0 ] || { echo "not ok - the disk lab needs root"; exit 1; }
if [ -z "${FERRY_DISK_LAB:-}" ]; then
    FERRY_DISK_LAB=1 exec unshare --mount --propagation private "$0" "$programs"
fi
# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"
finish() {
    end
    umount "$lab/ext4" "$lab/tmpfs" "$lab/state" 2>/dev/null || true
    rm -rf "$lab"
}
trap finish EXIT

mkdir "$lab/tmpfs" "$lab/ext4" "$lab/other" "$lab/state" "$lab/log.d"
mount -t tmpfs -o size=64m tmpfs "$lab/tmpfs"
mount -t tmpfs -o size=16m,mode=700 tmpfs "$lab/state"
truncate -s 64M "$lab/ext4.img"
mkfs.ext4 -q -F -m 0 "$lab/ext4.img"
mount -o loop "$lab/ext4.img" "$lab/ext4"

port=$(python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
run python3 "$here/server.py" 127.0.0.1 "$port" "$lab"
run "$programs/ferryd" --state-dir "$lab/state"
until_ 60 "the server does not answer" takes 127.0.0.1 "$port"
until_ 60 "the service does not answer" answers
url() { echo "http://127.0.0.1:$port/$1"; }
free() { df --output=avail -B1 "$1" | tail -n 1; }
leave() { # FOLDER MIB — fill it up but for so much
    head -c $(($(free "$1") - ($2 << 20))) /dev/zero >"$1/filler"
    sync -f "$1"
}
requests() { grep -c "^/$1 " "$lab/log" || true; }

for disk in tmpfs ext4; do
    leave "$lab/$disk" 24
    # Its length is not known: it finds out in the middle.
    filling=$(add -d "$lab/$disk" --attempts 1 "$(url "40/$disk-filling?chunked&rate=20000")")
    until_ 90 "$disk: a full disk is not waited for" has_state "$filling" waiting
    shows "$filling" "reason:     disk" "no space left on $lab/$disk: 16.0 MiB needed, " || die "$(ferry show "$filling")"
    kept=$(field "$filling" bytes_durable)
    ((kept > 23 << 20 && kept <= 24 << 20)) || die "$disk: $kept bytes are kept of 24 MiB"
    ok "$disk full at 60 %: $(field "$filling" message)"
    # Its length is known: it begins only with enough room.
    known=$(add -d "$lab/$disk" --attempts 1 "$(url "30/$disk-known")")
    until_ 60 "$disk: the next job does not wait" has_state "$known" waiting
    shows "$known" "reason:     disk" "30.0 MiB needed, " || die "$(ferry show "$known")"
    [ -z "$(find "$lab/$disk" -name '*known*')" ] || die "$disk: a partial takes what room there is"
    elsewhere=$(add -d "$lab/other" "$(url "5/$disk-elsewhere")")
    until_ 60 "$disk: a job on another disk does not run" has_state "$elsewhere" completed
    before="$(requests "40/$disk-filling") $(requests "30/$disk-known")"
    sleep 6
    [ "$before" = "1 1" ] && [ "$(requests "40/$disk-filling") $(requests "30/$disk-known")" = "1 1" ] \
        || die "$disk: those who wait ask the server"
    ok "$disk: another disk's job runs on, and those who wait ask nobody"
    rm "$lab/$disk/filler"
    began=$SECONDS
    until_ 90 "$disk: room that is there is not taken" has_state "$filling" completed
    [ "$(grep "^/40/$disk-filling " "$lab/log" | tail -n 1)" = "/40/$disk-filling $kept" ] \
        || die "$disk: went on from elsewhere than $kept: $(cat "$lab/log")"
    is_file "$lab/$disk/$disk-filling" 40
    ok "$disk: goes on by itself after $((SECONDS - began)) s, from byte $kept"
    # Now there is room for the one, and not for both.
    shows "$known" "reason:     disk" || die "$(ferry show "$known")"
    rm "$lab/$disk/$disk-filling"
    until_ 60 "$disk: the second job does not go on" has_state "$known" completed
    is_file "$lab/$disk/$disk-known" 30
    ok "$disk: the next one follows when there is room for it"
    rm "$lab/$disk/$disk-known"
done

# The disk of the queue itself is full: what was accepted is not lost, and what cannot be is refused.
slow=$(add -d "$lab/other" "$(url "20/slow?rate=2000")")
until_ 60 "the transfer does not begin" eval '[ "$(field $slow bytes_done)" -gt 1000000 ]'
head -c 16M /dev/zero >"$lab/state/filler" 2>/dev/null || true
code=0
refused=0
for _ in $(seq 200); do
    text=$(ferry add --allow-http -d "$lab/other" "$(url 1/refused)-$RANDOM-$RANDOM" 2>&1) || { code=$?; refused=1; break; }
    accepted="${accepted:-} $(tail -n 1 <<<"$text")"
done
((refused == 1)) || die "a full queue takes everything"
[[ $text == ferry:* ]] || die "$text"
ok "the queue's disk is full: exit $code, $(head -n 1 <<<"$text")"
rm "$lab/state/filler"
until_ 90 "the transfer does not go on" has_state "$slow" completed
is_file "$lab/other/slow" 20
for job in ${accepted:-}; do until_ 60 "job $job is lost" has_state "$job" completed; done
ok "with room again everything that was accepted is done"
echo "the disk lab holds: $passed"
