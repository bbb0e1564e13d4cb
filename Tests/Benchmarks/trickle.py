#!/usr/bin/env python3
"""One fast download alone, and beside 64 that send a few bytes a second.

  trickle.py [--slow N] [--rounds N] [--size MIB]

Prints the times of both in turns, the median of their ratios (1.0: the slow ones cost nothing; the aim is 0.9), and
the service's memory. The slow ones come from a port of their own each, so that no limit of a host is in play.
"""
import argparse, os, selectors, shutil, socket, statistics, threading, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--slow", type=int, default=64)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--size", type=int, default=1024, help="of the fast download, in MiB")
options = parser.parse_args()
folder, out = lab.scratch(), lab.scratch(lab.BENCH_OUT)
queue = lab.Queue(folder + "/s", folder + "/h")
queue.configure("{ limits: { running: 200, per_host: 200 } }")


class Dripper:
    """Servers on ports of their own, in one thread: a head at once, then 12 bytes each half second."""

    def __init__(self, count):
        self.listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
        self.taps = []
        threading.Thread(target=self.run, daemon=True).start()

    def urls(self):
        return [f"http://127.0.0.1:{l.getsockname()[1]}/slow-{n}" for n, l in enumerate(self.listeners)]

    def run(self):
        waiting, due = selectors.DefaultSelector(), time.monotonic()
        for listener in self.listeners:
            waiting.register(listener, selectors.EVENT_READ)
        while True:
            for key, _ in waiting.select(max(0, due - time.monotonic())):
                tap, _ = key.fileobj.accept()
                tap.recv(65536)
                tap.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\nETag: \"slow\"\r\n\r\n")
                self.taps.append(tap)
            if time.monotonic() >= due:
                due += 0.5
                for tap in list(self.taps):
                    try:
                        tap.sendall(b"drip, drop. ")
                    except OSError:
                        self.taps.remove(tap)


def serve_file(path):
    """A server that lets the kernel send one file; threads of a process of its own, so that nothing slows it."""
    listener = socket.create_server(("127.0.0.1", 0))
    child = os.fork()
    if child == 0:
        try:
            size = os.path.getsize(path)
            while True:
                link, _ = listener.accept()
                link.recv(65536)
                link.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {size}\r\nETag: \"fast\"\r\n\r\n".encode())
                with open(path, "rb") as file:
                    link.sendfile(file)
                link.close()
        finally:
            os._exit(0)
    port = listener.getsockname()[1]
    listener.close()
    return child, f"http://127.0.0.1:{port}/fast"


source = folder + "/source"
block = os.urandom(MIB)
with open(source, "wb") as file:
    for _ in range(options.size):
        file.write(block)
child, url = serve_file(source)


def fast(name):
    begun = time.monotonic()
    queue.run("get", "-q", "-o", f"{out}/{name}", url)
    taken = time.monotonic() - begun
    os.remove(f"{out}/{name}")
    return taken


try:
    queue.start()
    idle = queue.memory()
    fast("warm")
    alone, beside = [], []
    loaded = 0.0
    for number in range(options.rounds):
        alone.append(fast(f"alone-{number}"))
        dripper = Dripper(options.slow)
        jobs = queue.run("add", "-q", "-d", out, *dripper.urls()).split()
        while sum(j["bytes_done"] > 0 for j in queue.list("--state", "running")) < options.slow:
            time.sleep(0.05)
        beside.append(fast(f"beside-{number}"))
        loaded = max(loaded, queue.memory())
        queue.run("cancel", *jobs)
    ratios = sorted(a / b for a, b in zip(alone, beside))
    print("alone, s: ", " ".join(f"{t:.2f}" for t in alone))
    print("beside, s:", " ".join(f"{t:.2f}" for t in beside))
    print(f"{options.size} MiB beside {options.slow} slow ones: rate {statistics.median(ratios):.2f} of that alone "
          f"(medians {statistics.median(alone):.2f} s and "
          f"{statistics.median(beside):.2f} s; {ratios[0]:.2f} to {ratios[-1]:.2f})")
    print(f"memory of the service, MiB: idle {idle:.1f}, beside the slow ones {loaded:.1f}, "
          f"peak {queue.memory('VmHWM'):.1f}")
finally:
    queue.kill(15)
    os.kill(child, 9)
    shutil.rmtree(folder)
    shutil.rmtree(out)
