#!/usr/bin/env bash
# What Ferry waits for, on real networks, disks and quotas, and by clocks that jump: all labs at once, in less than two
# minutes.
#
#   Tests/Waits/test.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root; see network.sh, disk.sh, quota.sh and clock.sh, which can be run alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
outputs=$(mktemp -d)
declare -A labs
for lab in disk quota clock; do
    "$here/$lab.sh" "$@" >"$outputs/$lab" 2>&1 &
    labs[$lab]=$!
done
code=0
"$here/network.sh" "$@" || code=$?
for lab in "${!labs[@]}"; do
    wait "${labs[$lab]}" || code=$?
    cat "$outputs/$lab"
done
rm -r "$outputs"
exit "$code"
