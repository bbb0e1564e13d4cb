#!/usr/bin/env python3
"""How many times the service asks the disk to be sure: for one file of 1 GiB, and for 100 small ones.

Counted by strace, which slows the service; what is counted is the number, not the time. Each sync of the database is
a commit; the rest belongs to files and folders.
"""
import collections, os, re, shutil, subprocess
import lab
from lab import MIB

folder, out = lab.scratch(), lab.scratch(lab.BENCH_OUT)
lab.Object.fill(1, 1100 * MIB)
origin = lab.Origin()


def count(what, objects):
    queue = lab.Queue(f"{folder}/{len(objects)}", folder + "/h")
    trace = f"{folder}/trace-{len(objects)}"
    queue.start("strace", "-f", "-y", "-qq", "--seccomp-bpf", "-o", trace, "-e", "signal=none",
                "-e", "trace=fsync,fdatasync,rename,renameat,renameat2,sync_file_range")
    with open(trace) as file:
        before = len(file.readlines())
    queue.run("add", "-q", "-d", out, *[origin.add(o) for o in objects])
    queue.wait_until_idle(300)
    os.kill(queue.serving(), 15)
    queue.daemon.wait()
    calls = collections.Counter()
    with open(trace) as file:
        for line in file.readlines()[before:]:
            found = re.search(r"\b(fsync|fdatasync|sync_file_range|rename\w*)\(\d*<?([^>,]*)", line)
            if found and "resumed" not in line:
                call, path = found.groups()
                kind = ("rename" if call.startswith("rename") else
                        "database log" if path.endswith("-wal") else "database" if ".db" in path else
                        "folder" if os.path.isdir(path) else "file")
                calls[kind if kind == "rename" else f"{call} of {kind}"] += 1
    total = sum(n for c, n in calls.items() if "sync of" in c)
    wrong = [o.name for o in objects if o.differs(f"{out}/{o.name}")]
    print(f"{what}: {total} syncs, {total / len(objects):.2f} a file; "
          + ", ".join(f"{c}: {n}" for c, n in sorted(calls.items())) + (f"; WRONG {wrong}" if wrong else ""))


try:
    count("one file of 1 GiB", [lab.Object("large", 1024 * MIB)])
    count("100 files of 64 KiB", [lab.Object(f"small-{n}", 64 * 1024) for n in range(100)])
finally:
    shutil.rmtree(folder)
    shutil.rmtree(out)
