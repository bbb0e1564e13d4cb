#!/usr/bin/env bash
# What Ferry waits for, on real networks and disks: both labs at once, in less than two minutes.
#
#   Tests/Waits/test.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root; see network.sh and disk.sh, which can be run alone.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
output=$(mktemp)
"$here/disk.sh" "$@" >"$output" 2>&1 &
disk=$!
code=0
"$here/network.sh" "$@" || code=$?
wait "$disk" || code=$?
cat "$output"
rm "$output"
exit "$code"
