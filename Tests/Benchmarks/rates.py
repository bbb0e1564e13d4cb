#!/usr/bin/env python3
"""Limits on bytes a second under real traffic: how exact, how even, how fair, at what cost.

  rates.py [--seconds N] [--rates 1M,10M,100M,4K] [--jobs 1,16] [--directions down,up]
  rates.py --live 10M,1M,none,64K [--line RATE] [--seconds N] [--jobs 1,16]

The server counts what is on the wire: of downloads the bytes that the kernel says were acknowledged (TCP_INFO, so that
no buffer of the server's plays a part), of uploads what it has received. For each case the table has

  error    the mean rate after the first two seconds, against the limit (the aim: 3 %)
  second   the most bytes in any second after the first, against the limit; `ok` up to 120 % and 64 KiB
  first    the same for the second in which all begins, when the kernel's buffers fill as well
  shares   of jobs that run at once, the smallest against the largest
  CPU      of the service, against one core

With --live the limit of running downloads changes to one after the other, and a line for each has what comes in each
second after the change, on the wire and in the files, in KiB. What the kernel had promised room for when a lower limit
came is still sent at once, and read at the new rate, so that the wire is idle meanwhile; --line has the server send no
faster than that.
"""
import argparse, json, os, shutil, socket, struct, sys, threading, time
import lab

UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}
parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=int, default=30)
parser.add_argument("--rates", default="1M,10M,100M,4K")
parser.add_argument("--jobs", default="1,16")
parser.add_argument("--directions", default="down,up")
parser.add_argument("--live")
parser.add_argument("--line")
options = parser.parse_args()
folder, out = lab.scratch(), lab.scratch(lab.BENCH_OUT)


def size(text):
    return int(text[:-1]) * UNITS[text[-1]]


class Meter:
    """A server of objects without a length, for which no disk is reserved, that takes any body.

    Its samples go to a file, a line each 50 ms."""

    def __init__(self, path, jobs=1):
        self.path, self.jobs, self.links, self.lock = path, jobs, {}, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = self.listener.getsockname()[1]
        self.child = os.fork()
        if self.child == 0:
            try:
                threading.Thread(target=self.accept, daemon=True).start()
                self.sample()
            finally:
                os._exit(0)
        self.listener.close()

    def accept(self):
        while True:
            link, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(link,), daemon=True).start()

    def serve(self, link):
        link.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 256 * 1024)
        head = b""
        while b"\r\n\r\n" not in head:
            piece = link.recv(65536)
            if not piece:
                return
            head += piece
        head, rest = head.split(b"\r\n\r\n", 1)
        method, name, _ = head.split(b"\r\n")[0].decode().split()
        entry = [name, link if method == "GET" else None, len(rest)]
        with self.lock:
            self.links[link.fileno()] = entry
        try:
            if method == "GET":
                link.sendall(b"HTTP/1.1 200 OK\r\nETag: \"x\"\r\nConnection: close\r\n\r\n")
                block, due = bytes(256 * 1024), 0
                while True:
                    link.sendall(block)
                    if options.line:
                        # What it was held back for is not made up for.
                        due = max(due, time.monotonic()) + len(block) / (size(options.line) / self.jobs)
                        time.sleep(max(0, due - time.monotonic()))
            room = bytearray(256 * 1024)
            while (count := link.recv_into(room)) > 0:
                entry[2] += count
        except OSError:
            pass
        with self.lock:
            del self.links[link.fileno()]
        link.close()

    def sample(self):
        with open(self.path, "w", buffering=1) as file:
            while True:
                with self.lock:
                    now, counts = time.monotonic(), {}
                    for name, link, count in self.links.values():
                        if link is not None:  # tcpi_bytes_acked
                            count = struct.unpack_from("Q", link.getsockopt(socket.IPPROTO_TCP, 11, 128), 120)[0]
                        counts[name] = count
                file.write(json.dumps([now, counts]) + "\n")
                time.sleep(0.05)

    def samples(self, begun):
        with open(self.path) as file:
            lines = [json.loads(line) for line in file if line.endswith("\n")]
        return [(at, counts) for at, counts in lines if at >= begun and counts]


def most(samples):
    """The most bytes in a second; a sample that comes late is taken for its part."""
    best, last = 0, 0
    totals = [(at, sum(counts.values())) for at, counts in samples]
    for first, (begun, before) in enumerate(totals):
        while last < len(totals) and totals[last][0] - begun < 1:
            last += 1
        if last == len(totals):
            break
        best = max(best, (totals[last][1] - before) / (totals[last][0] - begun))
    return best


def used(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def case(meter, queue, direction, text, count):
    rate = size(text)
    queue.run("limit", "default", "--down", "default", "--up", "default")
    queue.run("limit", f"--{direction}", text)
    begun = time.monotonic()
    if direction == "down":
        queue.run("add", "-q", "-d", out, *[f"http://127.0.0.1:{meter.port}/{n}" for n in range(count)])
    else:
        for n in range(count):
            queue.run("add", "-q", "--protocol", "put", "--upload", f"{folder}/source", f"http://127.0.0.1:{meter.port}/{n}")
    while not (samples := meter.samples(begun)) or len(samples[-1][1]) < count:
        time.sleep(0.05)
    first, cpu = samples[0][0], used(queue.daemon.pid)
    ready = time.monotonic()
    time.sleep(options.seconds)
    cpu = (used(queue.daemon.pid) - cpu) / (time.monotonic() - ready)
    samples = meter.samples(begun)
    queue.run("cancel", "--all")
    for name in os.listdir(out):
        os.remove(f"{out}/{name}")
    # From when all are there and the first bursts are over.
    steady = [s for s in samples if s[0] >= ready + 2 and len(s[1]) == count]
    (since, before), (until, after) = steady[0], steady[-1]
    gained = {name: after[name] - before[name] for name in before if name in after}
    mean = sum(gained.values()) / (until - since)
    worst, opening = most([s for s in samples if s[0] >= first + 1]), most([s for s in samples if s[0] <= first + 2.2])
    ok = "ok" if worst <= rate * 1.2 + 65536 else "OVER"
    print(f"{direction:>4} {text:>5} {count:>4} {100 * (mean / rate - 1):>7.2f} % "
          f"{100 * worst / rate:>6.0f} % {ok:<4} {100 * opening / rate:>6.0f} % "
          f"{min(gained.values()) / max(1, max(gained.values())):>7.2f} {100 * cpu:>6.1f} %", flush=True)


def at(series, when):
    """A count at a time between two samples."""
    if when < series[0][0]:
        return 0
    for (t0, n0), (t1, n1) in zip(series, series[1:]):
        if t0 <= when <= t1:
            return n0 + (n1 - n0) * (when - t0) / (t1 - t0)
    return series[-1][1]


def live(queue, count):
    meter = Meter(f"{folder}/live-{count}", count)
    limits = options.live.split(",")
    queue.run("limit", "default", "--up", "default", "--down", limits[0])
    begun, files, changes = time.monotonic(), [], []
    queue.run("add", "-q", "-d", out, *[f"http://127.0.0.1:{meter.port}/{n}" for n in range(count)])
    for text in limits:
        queue.run("limit", "--down", text)
        changes.append(time.monotonic())
        while time.monotonic() < changes[-1] + options.seconds:
            files.append((time.monotonic(), sum(job["bytes_done"] for job in queue.list("--state", "running"))))
            time.sleep(0.2)
    wire = [(when, sum(counts.values())) for when, counts in meter.samples(begun)]
    queue.run("cancel", "--all")
    os.kill(meter.child, 9)
    for name in os.listdir(out):
        os.remove(f"{out}/{name}")
    for text, change in zip(limits, changes):
        for what, series in ("wire", wire), ("files", files):
            spans = [(at(series, change + n + 1) - at(series, change + n)) / 1024 for n in range(options.seconds - 1)]
            print(f"{text:>5} {count:>4} {what:>5} " + " ".join(f"{span:>8.0f}" for span in spans), flush=True)


queue = lab.Queue(folder + "/s", folder + "/h")
queue.configure("{ limits: { running: 64, per_host: 64 } }")
with open(folder + "/source", "wb") as file:
    file.truncate(64 << 30)  # it has no blocks
meter = Meter(folder + "/samples")
try:
    queue.start()
    if options.live:
        for count in options.jobs.split(","):
            live(queue, int(count))
        sys.exit()
    print("     limit jobs     error    second         first  shares      CPU")
    for direction in options.directions.split(","):
        for text in options.rates.split(","):
            for count in options.jobs.split(","):
                case(meter, queue, direction, text, int(count))
finally:
    queue.kill(15)
    os.kill(meter.child, 9)
    shutil.rmtree(folder)
    shutil.rmtree(out)
