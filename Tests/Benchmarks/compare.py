#!/usr/bin/env python3
"""Times commands against each other in one interleaved run.

usage: compare.py [--rounds N] [--warm MIB] [--folder DIR] [--expect SHA256] NAME=COMMAND ...

Each round runs every command once, in a new shuffled order, in a shell, with $OUT set to a fresh file name. The
first command is the base. Printed are medians of wall time, CPU time (children included) and peak memory of the
largest process, and the median of the per-round ratios base / this: above 1 is faster than the base.

--warm writes and deletes that many MiB before each command, untimed, so that the first touch of a page of a
virtual machine is not billed to one of them. --expect checks the SHA-256 of $OUT after each run, untimed.
A command that fails ends the run.
"""
import argparse
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

parser = argparse.ArgumentParser(usage=__doc__)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--warm", type=int, default=0)
parser.add_argument("--folder", default=None)
parser.add_argument("--expect", default=None)
parser.add_argument("commands", nargs="+")
options = parser.parse_args()
commands = [tuple(item.split("=", 1)) for item in options.commands]
records = {name: [] for name, _ in commands}


def measure(command):
    """Runs a command once and gives its wall time, CPU time and peak memory in MiB."""
    folder = tempfile.mkdtemp(prefix="ferry-bench-", dir=options.folder)
    try:
        if options.warm:
            warm = os.path.join(folder, "warm")
            with open(warm, "wb") as file:
                block = bytes(1 << 20)
                for _ in range(options.warm):
                    file.write(block)
            os.unlink(warm)
        environment = dict(os.environ, OUT=os.path.join(folder, "out"), DIR=folder)
        begun = time.monotonic()
        process = subprocess.Popen(["sh", "-c", command], env=environment, stdout=subprocess.DEVNULL)
        _, status, usage = os.wait4(process.pid, 0)
        wall = time.monotonic() - begun
        if status:
            sys.exit(f"failed with status {os.waitstatus_to_exitcode(status)}: {command}")
        if options.expect:
            digest = subprocess.run(
                ["openssl", "dgst", "-sha256", "-r", environment["OUT"]], capture_output=True, text=True, check=True
            ).stdout.split()[0]
            if digest != options.expect:
                sys.exit(f"wrong content: {command}")
        return wall, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
    finally:
        shutil.rmtree(folder, ignore_errors=True)


for round_number in range(options.rounds):
    for name, command in random.sample(commands, len(commands)):
        records[name].append(measure(command))

base = records[commands[0][0]]
print(f"{'command':24} {'wall s':>8} {'best':>8} {'CPU s':>8} {'MiB':>7} {'x wall':>7} {'x CPU':>7}")
for name, _ in commands:
    runs = records[name]
    median = [statistics.median(run[i] for run in runs) for i in range(3)]
    ratio = [statistics.median(b[i] / max(r[i], 1e-6) for b, r in zip(base, runs)) for i in range(2)]
    best = min(run[0] for run in runs)
    print(
        f"{name:24} {median[0]:8.3f} {best:8.3f} {median[1]:8.3f} {median[2]:7.1f} {ratio[0]:7.2f} {ratio[1]:7.2f}",
        flush=True,
    )
