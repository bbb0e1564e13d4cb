#!/usr/bin/env python3
"""Times commands while 64 transfers run and many jobs are queued.

  control-latency.py [--queued N] [--rounds N] [--running N] [--rate RATE]

A daemon fetches from nginx on loopback, each transfer held to RATE (nginx's `limit_rate`) so that all of them last.
With `--rate 0` they run at full speed: a job that has ended makes room for the next one, and its file is unlinked.
Each round runs `list --limit 50`, `show`, `pause`, `resume` and `set --priority`, each of a queued job, as processes
of their own: start-up counts. Printed are median, p99 and the longest, in milliseconds. At the end come the commands
about the whole queue, once each, and how long a `show` took at most meanwhile.
"""
import argparse, os, random, statistics, subprocess, sys, threading, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--queued", type=int, default=100_000)
parser.add_argument("--rounds", type=int, default=200)
parser.add_argument("--running", type=int, default=64)
parser.add_argument("--rate", default="256k")
parser.add_argument("--size", type=int, default=64, help="size of a file in MiB")
options = parser.parse_args()
folder = lab.scratch()
out = folder + "/out"  # in memory: the disk is not what is measured
port = lab.socket.create_server(("127.0.0.1", 0)).getsockname()[1]
os.makedirs(folder + "/root")
with open(folder + "/root/file", "wb") as file:
    file.truncate(options.size * MIB)
with open(folder + "/nginx.conf", "w") as file:
    file.write(f"""
worker_processes 1; daemon off; user root; pid {folder}/pid; error_log {folder}/error.log;
events {{ worker_connections 4096; }}
http {{
    access_log off; client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/c;
    server {{ listen 127.0.0.1:{port}; root {folder}/root; rewrite ^ /file break; limit_rate {options.rate}; }}
}}
""")
nginx = subprocess.Popen(["nginx", "-c", folder + "/nginx.conf", "-e", folder + "/error.log"])
queue = lab.Queue(folder + "/s", folder + "/h")
queue.configure(f"{{ limits: {{ running: {options.running}, per_host: {options.running} }} }}")


def unlink_ended():
    """Keeps finished files from filling the memory; partials are hidden files."""
    while not over.wait(0.2):
        for name in os.listdir(out) if os.path.isdir(out) else []:
            if not name.startswith("."):
                os.unlink(f"{out}/{name}")


def timed(*arguments):
    begun = time.monotonic()
    queue.run(*arguments)
    return (time.monotonic() - begun) * 1000


def report(name, times):
    times.sort()
    p99 = times[min(len(times) - 1, int(len(times) * 0.99))]
    print(f"{name:16} median {statistics.median(times):7.1f}   p99 {p99:7.1f}   max {times[-1]:7.1f}", flush=True)


def whole(*arguments):
    """Runs a command about the whole queue, with a `show` all the time."""
    longest, over = [0.0], threading.Event()

    def show():
        while not over.is_set():
            longest[0] = max(longest[0], timed("show", "1"))

    watcher = threading.Thread(target=show)
    watcher.start()
    took = timed(*arguments)
    over.set()
    watcher.join()
    print(f"{' '.join(arguments):16} {took / 1000:.2f} s   longest show meanwhile {longest[0]:.1f} ms", flush=True)


over = threading.Event()
try:
    if options.rate == "0":
        threading.Thread(target=unlink_ended).start()
    queue.start()
    base = f"http://127.0.0.1:{port}"
    for first in range(0, options.running, 64):
        queue.run("add", "-d", out, "--priority", "9", *[f"{base}/run-{n}" for n in range(first, first + 64)])
    begun = time.monotonic()
    for first in range(0, options.queued, 5000):
        last = min(first + 5000, options.queued)
        queue.run("add", "-d", out, "--group", "bulk", *[f"{base}/wait-{n}" for n in range(first, last)])
    print(f"{options.queued} jobs added in {time.monotonic() - begun:.1f} s")
    print(f"{len(queue.list('--state', 'running'))} running, load {os.getloadavg()[0]:.1f}")
    times = {name: [] for name in ["list --limit 50", "show", "show (running)", "pause", "resume", "set"]}
    running = {job["id"] for job in queue.list("--state", "running")}
    for _ in range(options.rounds):
        # Of the last half: with files at full speed the first ones are soon done.
        job = str(random.randint(options.running + 1 + options.queued // 2, options.running + options.queued))
        times["list --limit 50"].append(timed("list", "--limit", "50"))
        times["show"].append(timed("show", job))
        times["show (running)"].append(timed("show", str(random.choice(sorted(running)))))
        times["pause"].append(timed("pause", job))
        times["resume"].append(timed("resume", job))
        times["set"].append(timed("set", job, "--priority", str(random.randint(-9, -1))))
    for name, values in times.items():
        report(name, values)
    print(f"{len(queue.list('--state', 'running'))} running at the end, load {os.getloadavg()[0]:.1f}")
    whole("pause", "--all")
    whole("resume", "--all")
    whole("set", str(options.running + options.queued), "--priority", "3")
    whole("cancel", "--group", "bulk")
    whole("remove", "--state", "cancelled")
finally:
    over.set()
    queue.kill()
    nginx.terminate()
    nginx.wait()
    lab.shutil.rmtree(folder)
