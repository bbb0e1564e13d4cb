#!/usr/bin/env python3
"""The k-th write, sync or folder sync of each thread of the service fails, for k = 1 … 20.

  disk-faults.py [--last K] [--files N]

Below the service, by strace, which counts the calls of each thread; all paths but those of the state folder. Each
run downloads many small files and two large ones. What must hold: a failed job has the reason local-io and goes on
after `ferry retry` from its durable offset; a full disk, or a quota, is waited for, each fifth time without any help;
each file is right, nothing is left over, and the service lives on. A thread that begins counts anew, and there are
many: a job may fail several times.
Needs strace and ptrace. Exit status 1 if anything was broken.
"""
import argparse, os, shutil, sys, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--first", type=int, default=1)
parser.add_argument("--last", type=int, default=20)
parser.add_argument("--calls", default="pwrite64,fdatasync,fsync")
parser.add_argument("--errors", default="EIO,ENOSPC,EDQUOT")
parser.add_argument("--files", type=int, default=100)
options = parser.parse_args()
lab.Object.fill(1, 96 * MIB)
origin, broken, failed_calls, waits, runs = lab.Origin(), [], 0, 0, 0


def expect(holds, what):
    if not holds:
        broken.append(what)
        print("BROKEN", what, flush=True)


def run(call, error, k):
    global failed_calls, waits
    what, folder = f"{call} {k}: {error}", lab.scratch()
    out, queue = folder + "/out", lab.Queue(folder + "/s", folder + "/h")
    os.mkdir(out)
    name = f"{call}-{error}-{k}"
    objects = [lab.Object(f"{name}-{n}", 40_000 + n * 997) for n in range(options.files)]
    objects += [lab.Object(f"{name}-large-{n}", 40 * MIB) for n in range(2)]
    origin.objects, origin.log = {}, []
    paths = [f"{out}/.{o.name}.{n + 1}.ferry-part" for n, o in enumerate(objects)] + [out]
    try:
        queue.start("strace", "-f", "-qq", "--seccomp-bpf", "-s", "0", "-o", folder + "/trace", "-e", "signal=none",
                    *[a for p in paths for a in ("-P", p)], "-e", f"trace={call}",
                    "-e", f"inject={call}:error={error}:when={k}")
        queue.run("add", "-q", "-d", out, *[origin.add(o) for o in objects])
        durable, end, is_full = {}, time.monotonic() + 300, error in ("ENOSPC", "EDQUOT")
        while left := queue.list("--state", "queued,running,waiting,failed"):
            for job in left:
                if job["state"] == "failed":
                    expect(job["reason"] == "local-io" and error == "EIO", f"{what}: failed: {job['message']}")
                    durable[job["url"].rsplit("/", 1)[1]] = job["bytes_durable"], time.monotonic()
                    queue.run("retry", str(job["id"]))
                elif job["state"] == "waiting":
                    expect(job["reason"] == "disk" and is_full, f"{what}: waits: {job['message']}")
                    durable[job["url"].rsplit("/", 1)[1]] = job["bytes_durable"], time.monotonic()
                    waits += 1
                    if k % 5:
                        queue.run("retry", str(job["id"]))
            if queue.daemon.poll() is not None:
                said = [line for line in queue.notes if "level=info" not in line]
                expect(False, f"{what}: the service ended with status {queue.daemon.poll()}: {''.join(said)[:500]}")
                return
            if time.monotonic() > end:
                expect(False, f"{what}: {len(left)} jobs are left, the first is {left[0]}")
                break
            time.sleep(0.02)
        for item in objects:
            path = f"{out}/{item.name}"
            why = item.differs(path) if os.path.exists(path) else "there is none"
            expect(why is None, f"{what}: {item.name}: {why}")
            if item.name in durable:
                offset, when = durable[item.name]
                later = [r.first for r in origin.requests(item.name) if r.at >= when]
                expect(all(first >= offset for first in later), f"{what}: {item.name}: {later} below {offset}")
        expect(len(os.listdir(out)) == len(objects), f"{what}: the folder holds {len(os.listdir(out))} names")
        with open(folder + "/trace") as trace:
            failed_calls += trace.read().count("(INJECTED)")
    finally:
        pid = queue.serving()
        if pid:
            os.kill(pid, 15)
        queue.daemon.wait()
        shutil.rmtree(folder)


begun = time.monotonic()
for call in options.calls.split(","):
    for error in options.errors.split(","):
        for k in range(options.first, options.last + 1):
            run(call, error, k)
            runs += 1
        print(f"… {call}, {error}: {runs} runs, {failed_calls} calls failed, jobs found waiting {waits} times, "
              f"{time.monotonic() - begun:.0f} s", flush=True)
print(f"{runs} runs, {failed_calls} calls failed, {len(broken)} promises broken")
sys.exit(1 if broken else 0)
