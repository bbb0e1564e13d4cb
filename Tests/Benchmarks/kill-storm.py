#!/usr/bin/env python3
"""Thousands of small files and three large ones, while the service is killed with SIGKILL again and again.

  kill-storm.py [--kills N] [--files N] [--seed N]

Commands go on adding meanwhile; each service is followed by the next one at once. Checked at the end: every job that
was told is completed exactly once, with the right content and nothing left over; no request began below the offset
that the list had shown as durable before the kill; and the first request for a file after a kill began where its
partial ended when the service was dead, or less than one write before, if the kill came amid a write. Exit status 1 if
not.
"""
import argparse, collections, os, random, shutil, sys, threading, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--kills", type=int, default=200)
parser.add_argument("--files", type=int, default=2000)
parser.add_argument("--large", type=int, default=200, help="size of a large file in MiB")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
random.seed(options.seed)
lab.Object.fill(options.seed, (options.large + 56) * MIB)
folder, out = lab.scratch(), lab.scratch(lab.BENCH_OUT)
origin, queue = lab.Origin(), lab.Queue(folder + "/s", folder + "/h")
objects = [lab.Object(f"small-{n}", chance.randint(4096, 200 * 1024)) for n in range(options.files)]
# The large ones last about as long as the kills do.
seconds = options.kills * 0.15
for number in range(3):
    objects.insert(number * options.files // 4, lab.Object(
        f"large-{number}", options.large * MIB, rate=options.large * MIB / seconds))
told, over, problems = {}, False, []


WRITE = 256 * 1024  # what the service writes at once, at most


def written():
    """The sizes of the partials, by object: there is one connection a file, so that is what was written."""
    sizes = {}
    with os.scandir(out) as entries:
        for entry in entries:
            if entry.name.endswith(".ferry-part"):
                sizes[entry.name[1:].rsplit(".", 2)[0]] = entry.stat().st_size
    return sizes


def problem(text):
    problems.append(text)
    print("BROKEN", text, flush=True)


def add():
    """Adds in small groups, as long as the kills go on; a command whose service dies goes on with the next one."""
    index = 0
    while index < len(objects):
        group = objects[index:index + chance.randint(1, 30)]
        process = queue.command("add", "-q", "-d", out, *[origin.add(o) for o in group])
        printed, error = process.communicate()
        numbers = [int(line) for line in printed.split()]
        for number, item in zip(numbers, group):
            told[number] = item
        if process.returncode != 0 or len(numbers) != len(group):
            failures.append(
                f"add of {len(group)}: status {process.returncode}, {len(numbers)} numbers, {error.strip()}")
        # Added twice, a job that is not done gives its number again; what was not told is added once more.
        index += len(numbers) if numbers else 0
        time.sleep(chance.uniform(0, 1.5 * seconds / (len(objects) / 15)))


failures, gaps, shown, dead, ends = [], [], [], collections.Counter(), []
adder = threading.Thread(target=add)
begun = time.monotonic()
try:
    queue.start()
    adder.start()
    kills, peak = 0, 0.0
    while kills < options.kills:
        time.sleep(chance.choice([chance.uniform(0, 0.02), chance.uniform(0, 0.3)]))
        running = []
        if chance.random() < 0.5:
            process = queue.command("list", "--json", "--state", "running")
            printed, _ = process.communicate()
            if process.returncode == 0:
                running = lab.json.loads(printed)["jobs"]
        pid = queue.serving()
        if pid is None:
            continue
        try:
            peak = max(peak, queue.memory("VmHWM") if pid == queue.daemon.pid else 0.0)
            os.kill(pid, 9)
        except (OSError, StopIteration):
            continue
        if pid == queue.daemon.pid:
            queue.daemon.wait()
        else:
            dead["on demand"] += 1  # started by an add; the daemon that waits for the queue follows
            while os.path.exists(f"/proc/{pid}"):
                time.sleep(0.001)
        at = time.monotonic()
        # None if the next service may be at work already: a daemon that waited for this one.
        ends.append((at, written() if queue.daemon.poll() is not None else None))
        kills += 1
        shown += [(at, j["url"].rsplit("/", 1)[1], j["bytes_durable"]) for j in running]
        if queue.daemon.poll() is not None:
            try:
                queue.start()
                gaps.append(time.monotonic() - at)
            except RuntimeError as error:
                # A command may have started a service between; a daemon takes over from it or says why not.
                dead[str(error)[-120:]] += 1
        if not adder.is_alive() and not queue.list("--state", "queued,running,waiting"):
            break
    storm = time.monotonic() - begun
    adder.join()
    origin.paced = False
    if queue.daemon.poll() is not None:
        queue.start()
    queue.wait_until_idle(300)
    listed = queue.list("--all")
    queue.kill(15)
    records = lab.Records(queue.state)
    for job in told:
        state = records.jobs.get(job, {}).get("state")
        if state != "completed":
            problem(f"job {job} ({told[job].name}) is {state}: {records.jobs.get(job, {}).get('message')}")
    for job in records.jobs.values():
        if records.completions.get(job["id"]) != 1:
            problem(f"job {job['id']} has {records.completions.get(job['id'])} events 'completed'")
    urls = collections.Counter(j["url"] for j in records.jobs.values())
    twice = [u for u, n in urls.items() if n > 1]
    if twice:
        problem(f"{len(twice)} URLs have more than one job, such as {twice[0]}")
    for item in objects:
        path = f"{out}/{item.name}"
        why = item.differs(path) if os.path.exists(path) else "is missing"
        if why:
            problem(f"{item.name} {why}")
    extra = sorted(set(os.listdir(out)) - {o.name for o in objects})
    if extra:
        problem(f"left over: {extra[:5]}")
    below = 0
    for at, name, durable in shown:
        for request in origin.requests(name):
            if request.at > at and request.first < durable:
                below += 1
                problem(f"{name}: {durable} bytes were durable, asked from {request.first}")
                break
    begun_at, most = collections.Counter(), collections.Counter()
    for number, (at, sizes) in enumerate(ends):
        until = ends[number + 1][0] if number + 1 < len(ends) else float("inf")
        for name, end in (sizes or {}).items():
            first = next((r.first for r in origin.requests(name) if at < r.at < until), None)
            if first is None:
                continue
            kind = name.split("-")[0]
            begun_at[kind, "the end" if first == end else "before"] += 1
            most[kind] = max(most[kind], end - first)
            if not end - WRITE < first <= end:
                problem(f"{name}: {end} bytes were written when the service was dead, asked from {first}")
    sent, size = sum(r.sent for r in origin.log), sum(o.size for o in objects)
    gaps.sort()
    print(f"seed {options.seed}: {kills} kills in {storm:.1f} s, {time.monotonic() - begun:.1f} s in all; "
          f"{len(told)} jobs told, {len(listed)} listed, {len(problems)} problems")
    print(f"  requests: {len(origin.log)} for {len(objects)} files; sent {sent / size:.3f} of their size")
    print(f"  offsets listed before a kill and checked after it: {len(shown)}, "
          f"{sum(d > 0 for _, _, d in shown)} above 0, requests below them: {below}")
    for kind in ("large", "small"):
        print(f"  requests for {kind} files after a kill that began where the partial ended: "
              f"{begun_at[kind, 'the end']}, before it: {begun_at[kind, 'before']}, by {most[kind]} bytes at most")
    if gaps:
        print(f"  from kill to the next service's readiness: median {gaps[len(gaps) // 2] * 1000:.0f} ms, "
              f"most {gaps[-1] * 1000:.0f} ms")
    print(f"  peak memory of a daemon: {peak:.1f} MiB; other ends: {dict(dead)}; adds that failed: {len(failures)}")
    for failure in failures[:5]:
        print("    ", failure)
finally:
    queue.kill()
    pid = queue.serving()
    if pid is not None:
        os.kill(pid, 15)
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(out, ignore_errors=True)
sys.exit(1 if problems else 0)
