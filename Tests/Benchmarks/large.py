#!/usr/bin/env python3
"""The service's memory while it downloads an object of 100 GiB that is made as it is sent.

  large.py [--seconds N] [--rate MIB]

The rate is held so that little of a disk is used; the job is cancelled when the time is over. Space for the whole is
reserved at the beginning: where the disk has less, the file system lies in a sparse image, for which root is needed.
Memory is sampled each second, from the third on.
"""
import argparse, os, shutil, socket, statistics, subprocess, threading, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--seconds", type=int, default=60)
parser.add_argument("--rate", type=int, default=280, help="MiB a second")
options = parser.parse_args()
SIZE = 100 << 30
folder, out = lab.scratch(), lab.scratch(lab.BENCH_OUT)
needed = (options.seconds * options.rate + 2048) * MIB
if shutil.disk_usage(out).free < needed:
    raise SystemExit(f"{out} needs {needed >> 30} GiB of space")
target, is_mounted = out + "/target", False
os.mkdir(target)
if shutil.disk_usage(out).free < SIZE + (10 << 30):
    with open(out + "/disk.img", "wb") as file:
        file.truncate(SIZE + (10 << 30))
    subprocess.run(["mkfs.ext4", "-q", "-F", "-m", "0", "-E", "nodiscard", out + "/disk.img"], check=True)
    subprocess.run(["mount", "-o", "loop,discard", out + "/disk.img", target], check=True)
    is_mounted = True
listener = socket.create_server(("127.0.0.1", 0))
block = memoryview(os.urandom(MIB))


def serve():
    while True:
        link, _ = listener.accept()
        head = link.recv(65536).decode("latin-1").lower()
        first = int(head.split("range: bytes=")[1].split("-")[0]) if "\r\nrange:" in head else 0
        status = f"206 x\r\nContent-Range: bytes {first}-{SIZE - 1}/{SIZE}" if first else "200 OK"
        link.sendall(f"HTTP/1.1 {status}\r\nContent-Length: {SIZE - first}\r\nETag: \"large\"\r\n"
                     "Accept-Ranges: bytes\r\n\r\n".encode())
        begun, sent = time.monotonic(), 0
        try:
            while first + sent < SIZE:
                sent += link.send(block[(first + sent) % MIB:])
                ahead = sent / (options.rate * MIB) - (time.monotonic() - begun)
                if ahead > 0:
                    time.sleep(ahead)
        except OSError:
            pass
        link.close()


threading.Thread(target=serve, daemon=True).start()
queue = lab.Queue(folder + "/s", folder + "/h")
try:
    queue.start()
    idle = queue.memory()
    job = queue.run("add", "-d", target + "/d", f"http://127.0.0.1:{listener.getsockname()[1]}/large.bin").strip()
    samples = []
    for _ in range(options.seconds):
        time.sleep(1)
        samples.append(queue.memory())
    row = queue.list()[0]
    queue.run("cancel", job)
    left = os.listdir(target + "/d")
    flat = samples[2:]
    print(f"{row['state']}, {row['bytes_done'] / (1 << 30):.1f} GiB of {row['bytes_total'] >> 30} "
          f"in {options.seconds} s")
    print(f"memory of the service, MiB: idle {idle:.1f}; while it downloads: least {min(flat):.1f}, "
          f"median {statistics.median(flat):.1f}, most {max(flat):.1f}; first ten seconds' mean "
          f"{statistics.mean(flat[:10]):.1f}, last ten seconds' {statistics.mean(flat[-10:]):.1f}")
    print(f"left in the folder after cancel: {left}")
finally:
    queue.kill(15)
    if is_mounted:
        subprocess.run(["umount", target], check=True)
    shutil.rmtree(folder)
    shutil.rmtree(out)
