#!/usr/bin/env bash
# Ferry and a network that fails: two hosts in network namespaces, a name server, and what can happen between them.
#
#   Tests/Waits/network.sh [FOLDER]     FOLDER holds ferry and ferryd; .build/debug if it is not named
#
# Needs root, iproute2 and python3. Prints a line for each thing that holds; ends with 1 at the first that does not.
# Nothing is left behind, and nothing of this machine's network is changed.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
programs=$(cd "${1:-$here/../../.build/debug}" && pwd)
[ "$(id -u)" = 0 ] || { echo "not ok - the network lab needs root"; exit 1; }
# shellcheck source-path=SCRIPTDIR
. "$here/common.sh"

server="ferry-$$-s" client="ferry-$$-c"
names=""
finish() {
    end
    [ -z "$names" ] || kill "$names" 2>/dev/null || true
    ip netns del "$server" 2>/dev/null || true
    ip netns del "$client" 2>/dev/null || true
    rm -rf "/etc/netns/$client" "$lab"
    rmdir /etc/netns 2>/dev/null || true
}
trap finish EXIT

for name in "$server" "$client"; do
    ip netns add "$name"
    ip -n "$name" link set lo up
done
ip link add wire netns "$server" type veth peer name wire netns "$client"
ip -n "$server" addr add 10.99.0.1/24 dev wire
ip -n "$server" link set wire up
link_up() {
    ip -n "$client" link set wire up
    ip -n "$client" addr replace 10.99.0.2/24 dev wire
    ip -n "$client" route replace default via 10.99.0.1
}
link_up
mkdir -p "/etc/netns/$client"
printf 'nameserver 10.99.0.1\noptions timeout:1 attempts:1\n' >"/etc/netns/$client/resolv.conf"
names_up() {
    ip netns exec "$server" python3 "$here/server.py" dns 10.99.0.1 10.99.0.1 &
    names=$!
}
names_down() {
    kill "$names"
    wait "$names" 2>/dev/null || true
    names=""
}
names_up
run ip netns exec "$server" python3 "$here/server.py" 10.99.0.1 80 "$lab"
run ip netns exec "$client" "$programs/ferryd" --state-dir "$lab/state"
mkdir "$lab/files"
until_ 60 "the service does not answer" answers
get() { add -d "$lab/files" --stall-timeout 3s "$@"; }

# The name service dies; nothing tells when it is back, so that the look after thirty seconds has to find it.
names_down
unnamed=$(get --attempts 1 http://files.test/1/unnamed)
until_ 30 "a name that cannot be looked up is not waited for" has_state "$unnamed" waiting
shows "$unnamed" "reason:     network" "no name service: the name files.test" "next try:" \
    || die "$(ferry show "$unnamed")"
ok "without a name service: $(ferry list | grep -F -m1 'no name service' | tr -s ' ')"
names_up
lost=$SECONDS

# A black hole: what the server sends comes nowhere. That is the line's failure, and a try.
hole=$(get "http://10.99.0.1/4/hole?rate=500")
until_ 30 "the transfer does not begin" eval '[ "$(field $hole bytes_done)" -gt 400000 ]'
ip -n "$server" route add blackhole 10.99.0.2/32
until_ 30 "a black hole is not noticed" \
    logged "$hole" "waiting (retry): 10.99.0.1: no byte for 3s while the body was received"
ok "black hole in the body: waiting (retry), no byte for 3s"
unmade=$(get http://10.99.0.1/1/unmade)
until_ 30 "a connection that is not made is not given up" \
    logged "$unmade" "waiting (retry): 10.99.0.1: no byte for 3s while the connection was made"
ok "black hole before the connection: waiting (retry), no byte for 3s"
ip -n "$server" route del blackhole 10.99.0.2/32

# A reset line is taken up where it broke.
reset=$(get "http://10.99.0.1/2/reset?rate=2000&reset=1000")
until_ 60 "a reset transfer does not go on" has_state "$reset" completed
grep -q '^/2/reset [1-9]' "$lab/log" || die "a reset transfer began anew: $(cat "$lab/log")"
is_file "$lab/files/reset" 2
ok "RST: goes on from byte $(sed -n 's|^/2/reset \([1-9]\)|\1|p' "$lab/log" | tail -n 1)"
until_ 90 "the black hole is not got over" has_state "$hole" completed
until_ 90 "the black hole is not got over" has_state "$unmade" completed
is_file "$lab/files/hole" 4

until_ 90 "a name service that is back is not found" has_state "$unnamed" completed
ok "the name service was back for $((SECONDS - lost)) s: done, with --attempts 1"

# A captive portal: a login page in the place of everything.
touch "$lab/portal"
portal=$(get http://files.test/1/portal.iso)
until_ 30 "a login page is not seen through" has_state "$portal" failed
shows "$portal" "reason:     bad-response" "web page instead of the file" "wants a login" \
    || die "$(ferry show "$portal")"
[ ! -e "$lab/files/portal.iso" ] || die "the login page was saved"
rm "$lab/portal"
ferry retry "$portal" >/dev/null
until_ 30 "after the login the job does not go on" has_state "$portal" completed
ok "captive portal: fails with advice, saves nothing, and goes on after ferry retry"

# The cable is pulled out here: address and routes go.
cut=$(get --attempts 1 "http://files.test/4/cut?rate=500")
until_ 30 "the transfer does not begin" eval '[ "$(field $cut bytes_done)" -gt 400000 ]'
ip -n "$client" link set wire down
until_ 30 "a lost network is not noticed" has_state "$cut" waiting
fresh=$(get --attempts 1 http://files.test/1/fresh)
until_ 30 "a job without a network does not wait" has_state "$fresh" waiting
for job in "$cut" "$fresh"; do
    shows "$job" "reason:     network" "no network: files.test cannot be reached" "next try:" \
        || die "$(ferry show "$job")"
done
ok "link down: $(ferry list | grep -F -m1 'no network' | tr -s ' ')"
kept=$(field "$cut" bytes_durable)
began=$SECONDS
link_up
until_ 30 "a network that is back is not noticed" has_state "$fresh" completed
((SECONDS - began < 25)) || die "it took $((SECONDS - began)) s: no event has told of it"
until_ 60 "a transfer does not go on with the network" has_state "$cut" completed
grep -q "^/4/cut $kept\$" "$lab/log" || die "went on from elsewhere than $kept: $(grep cut "$lab/log")"
is_file "$lab/files/cut" 4
ok "link up: goes on by itself from byte $kept, with --attempts 1"

# The other end is pulled out: address and routes stay, and nothing can be sent.
cut=$(get --attempts 1 "http://10.99.0.1/3/carrier?rate=500")
until_ 30 "the transfer does not begin" eval '[ "$(field $cut bytes_done)" -gt 400000 ]'
ip -n "$server" link set wire down
until_ 30 "a lost carrier is not noticed" has_state "$cut" waiting
shows "$cut" "reason:     network" "no network: 10.99.0.1 cannot be reached" || die "$(ferry show "$cut")"
ip -n "$server" link set wire up
until_ 60 "a transfer does not go on with the carrier" has_state "$cut" completed
is_file "$lab/files/carrier" 3
ok "no carrier: waits, and goes on by itself, with --attempts 1"
names_down
echo "the network lab holds: $passed"
