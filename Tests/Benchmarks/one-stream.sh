#!/bin/sh
# One stream, warm: `ferry get` (durable: checkpoints, sync, atomic publication, database) against `curl -o` and
# whatever other clients are installed, over http and https.
#   SIZE=bytes ROUNDS=n ./one-stream.sh
. "$(dirname "$0")/common.sh"
SIZE=${SIZE:-1073741824} ROUNDS=${ROUNDS:-7}
make_file "file-$SIZE" "$SIZE"
start_server
expect=$(digest "$ROOT/file-$SIZE")
run() { # URL
    set -- "$1" "curl=exec curl -sS --cacert $CA -o \$OUT $1" \
        "ferry=exec $FERRY get -q --cacert $CA --state-dir \$DIR/s -o \$OUT $1" \
        "ferry+sha256=exec $FERRY get -q --cacert $CA --checksum sha256:$expect --state-dir \$DIR/s -o \$OUT $1" \
        "curl+openssl=curl -sS --cacert $CA -o \$OUT $1 && openssl dgst -sha256 \$OUT" \
        "curl+sync=curl -sS --cacert $CA -o \$OUT $1 && sync -d \$OUT"
    url=$1; shift
    command -v wget >/dev/null && set -- "$@" "wget=exec wget -q --ca-certificate=$CA -O \$OUT $url"
    command -v wget2 >/dev/null && set -- "$@" "wget2=exec wget2 -q --ca-certificate=$CA -O \$OUT $url"
    command -v aria2c >/dev/null && set -- "$@" \
        "aria2c=exec aria2c --no-conf -q -x1 -s1 --file-allocation=none --ca-certificate=$CA -d \$DIR -o out $url"
    python3 "$here/compare.py" --rounds "$ROUNDS" --warm $((SIZE / 1048576 * 2)) --folder "$BENCH_OUT" \
        --expect "$expect" "$@"
}
echo "# $SIZE bytes, http"; run "http://127.0.0.1:$PORT/file-$SIZE"
echo "# $SIZE bytes, https"; run "https://127.0.0.1:$TLSPORT/file-$SIZE"
echo "(ferry's CPU and memory are the command's; the service's are in kill-loop.sh and in the figures of wall time)"
