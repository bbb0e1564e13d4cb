#!/bin/sh
# `ferry get` of a large file while its service is killed with SIGKILL at random moments.
#   SIZE=bytes KILLS=n SCHEME=http|https SEED=n ./kill-loop.sh
# Prints for each kill the offset that was committed, and the one that the next request began at (never below),
# the service's peak memory, and whether the file is whole.
. "$(dirname "$0")/common.sh"
SIZE=${SIZE:-4294967296} KILLS=${KILLS:-30} SCHEME=${SCHEME:-http} SEED=${SEED:-1}
make_file "file-$SIZE" "$SIZE"
start_server
port=$PORT; [ "$SCHEME" = http ] || port=$TLSPORT
python3 - "$FERRY" "$BENCH_OUT" "$SCHEME://127.0.0.1:$port/file-$SIZE" "$CA" "$ROOT/file-$SIZE" "$KILLS" "$SEED" \
    "$RUN/access.log" <<'PY'
import json, os, random, shutil, signal, subprocess, sys, tempfile, time
ferry, out, url, ca, source, kills, seed = sys.argv[1:6] + [int(sys.argv[6]), int(sys.argv[7])]
access = sys.argv[8]
open(access, "w").close()
random.seed(seed)
folder = tempfile.mkdtemp(prefix="ferry-kill-", dir=out)
state = folder + "/state"
size = os.path.getsize(source)


def service():
    """The process that serves the state folder, by the lock's greeting."""
    import socket
    s = socket.socket(socket.AF_UNIX)
    s.settimeout(5)
    try:
        s.connect(state + "/control.sock")
        return json.loads(s.makefile().readline())["hello"]["pid"]
    except (OSError, ValueError, KeyError):
        return None
    finally:
        s.close()


def ask(*arguments):
    done = subprocess.run([ferry, *arguments, "--json", "--state-dir", state], capture_output=True, text=True)
    return json.loads(done.stdout)


begun = time.monotonic()
get = subprocess.Popen([ferry, "get", "-q", "--attempts", "2", "--cacert", ca, url, "-o", folder + "/file",
                        "--state-dir", state], stdout=subprocess.DEVNULL)
done, peak = 0, 0
step = size / (kills + 1)
while done < kills and get.poll() is None:
    pid = service()
    if pid is None:
        time.sleep(0.005)
        continue
    # Wait until the download has come a random way further, then kill.
    target = (done + random.random()) * step
    while get.poll() is None:
        try:
            with open(f"/proc/{pid}/status") as file:
                peak = max([peak] + [int(l.split()[1]) for l in file if l.startswith("VmHWM")])
            jobs = ask("list")["jobs"]
        except (OSError, ValueError, KeyError):
            break
        if jobs and jobs[0]["bytes_done"] >= target:
            break
        time.sleep(0.01)
    if get.poll() is not None:
        break
    try:
        os.kill(pid, signal.SIGKILL)
        done += 1
    except ProcessLookupError:
        pass
status = get.wait()
log = ask("log", "1")
attempts = log["attempts"]
offsets = [a["offset_bytes"] for a in attempts]
same = subprocess.run(["cmp", source, folder + "/file"]).returncode == 0
time.sleep(0.2)  # the server writes its log at the end of a request
# uri status body_bytes range: what the server saw, in the order in which the requests ended
requests = [line.split() for line in open(access)]
asked = [int(r[3].split("=")[1].rstrip("-")) if r[3] != "-" else 0 for r in requests]
sent = sum(int(r[2]) for r in requests)
never_below = len(asked) == len(offsets) and all(a >= o for a, o in zip(asked, offsets))
print(f"seed {seed}: killed {done} times, exit status {status}, {time.monotonic() - begun:.1f} s, "
      f"{len(attempts)} attempts")
print("committed before each attempt:", offsets)
print("asked for by each request:    ", asked)
print(f"every request at or above the committed offset: {never_below}")
print(f"sent by the server: {sent} bytes, {sent / size:.3f} of the file's size")
print(f"peak memory of a service: {peak / 1024:.1f} MiB; content equal: {same}; job: {log['job']['state']}")
shutil.rmtree(folder)
sys.exit(0 if same and status == 0 and never_below else 1)
PY
