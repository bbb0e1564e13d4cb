# Sourced by the benchmarks: a server with generated files, and the built tools.
#   BENCH_DIR   scratch folder; its files are kept for the next run (default: ferry-bench in /dev/shm)
#   BENCH_OUT   where downloads are written (default: ferry-bench-out in /var/tmp): the disk to be measured
#   FERRY       the command under test (default: the release build)
set -eu
here=$(cd "$(dirname "$0")" && pwd)
project=$(cd "$here/../.." && pwd)
BENCH_DIR=${BENCH_DIR:-/dev/shm/ferry-bench}
BENCH_OUT=${BENCH_OUT:-/var/tmp/ferry-bench-out}
FERRY=${FERRY:-$project/.build/release/ferry}
PORT=${PORT:-18980} TLSPORT=${TLSPORT:-18943}
ROOT=$BENCH_DIR/files RUN=$BENCH_DIR/run
CA=$RUN/ca.crt
[ -x "$FERRY" ] || { echo "no $FERRY; build with: swift build -c release --static-swift-stdlib" >&2; exit 1; }
mkdir -p "$ROOT" "$RUN" "$BENCH_OUT"

make_certificate() {
    [ -s "$RUN/server.crt" ] && return
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 365 -subj "/CN=benchmark CA" \
        -keyout "$RUN/ca.key" -out "$CA" 2>/dev/null
    openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=localhost" \
        -keyout "$RUN/server.key" -out "$RUN/server.csr" 2>/dev/null
    printf 'subjectAltName=DNS:localhost,IP:127.0.0.1\n' > "$RUN/extensions"
    openssl x509 -req -in "$RUN/server.csr" -CA "$CA" -CAkey "$RUN/ca.key" -CAcreateserial -days 365 \
        -extfile "$RUN/extensions" -out "$RUN/server.crt" 2>/dev/null
}

# make_file NAME BYTES: incompressible, the same in every run
make_file() {
    [ "$(stat -c %s "$ROOT/$1" 2>/dev/null)" = "$2" ] && return
    openssl enc -aes-128-ctr -nosalt -K 00112233445566778899aabbccddeeff -iv 00 -in /dev/zero 2>/dev/null |
        head -c "$2" > "$ROOT/$1"
}

digest() { openssl dgst -sha256 -r "$1" | cut -d' ' -f1; }

start_server() {
    make_certificate
    sed -e "s#@ROOT@#$ROOT#; s#@RUN@#$RUN#; s#@PORT@#$PORT#; s#@TLSPORT@#$TLSPORT#" "$here/nginx.conf.in" \
        > "$RUN/nginx.conf"
    /usr/sbin/nginx -c "$RUN/nginx.conf" -p "$RUN"
    trap 'kill "$(cat "$RUN/nginx.pid")"' EXIT
    trap 'exit 1' INT TERM
}
