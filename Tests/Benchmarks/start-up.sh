#!/bin/sh
# Start-up: `ferry list` and `ferry add` with a service running, `ferry list` that starts one, against
# `curl --version`.
#   ROUNDS=n ./start-up.sh
. "$(dirname "$0")/common.sh"
ROUNDS=${ROUNDS:-41}
folder=$(mktemp -d "$BENCH_OUT/start-up.XXXXXX")
"$FERRY" daemon --state-dir "$folder/daemon" 2>/dev/null &
daemon=$!
trap 'kill $daemon; wait $daemon 2>/dev/null; rm -rf "$folder"' EXIT
"$FERRY" list --state-dir "$folder/daemon" >/dev/null
python3 "$here/compare.py" --rounds "$ROUNDS" --folder "$BENCH_OUT" \
    "curl--version=exec curl --version" \
    "ferry-version=exec $FERRY version" \
    "ferry-list=exec $FERRY list --state-dir $folder/daemon" \
    "ferry-add-same=exec $FERRY add http://127.0.0.1:9/x -d $folder --state-dir $folder/daemon" \
    "on-demand-list=exec $FERRY list --state-dir \$DIR/s"
