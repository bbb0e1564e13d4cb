#!/usr/bin/env python3
"""Power cuts at random moments under a working queue, on a real file system; to be run as root.

  power-cut.py [--cuts N] [--fs ext4|xfs] [--seed N] [--move-device]

State folder and destination lie on a loop device. While commands add and cancel jobs and the service downloads,
FS_IOC_SHUTDOWN stops every further write; the service is killed, and the disk mounted again with what survived
(journal replay). Options let as much be lost as the file system allows: no early journal commits, no rescue of a
rename that was not synced. What must hold is checked at the first look, with the service not running, and when the
next service has finished the queue. --move-device mounts with another device number each time, as a boot may.
Half of the cuts are aimed at the end of a job: they come within some milliseconds after a partial has its whole size,
or has got its final name. How many cuts fell between these and the end of a job is told at the end.
Needs e2fsprogs or xfsprogs. Exit status 1 if anything was broken.

What commands said counts if it came before the cut began: the ioctl lets a sync that is under way end well without
its data. --control shows that with a plain writer that appends, syncs and tells, in the place of Ferry.
"""
import argparse, collections, fcntl, os, random, shutil, struct, subprocess, sys, threading, time
import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--cuts", type=int, default=100)
parser.add_argument("--fs", choices=("ext4", "xfs"), default="ext4")
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--move-device", action="store_true")
parser.add_argument("--control", action="store_true")
options = parser.parse_args()
chance = random.Random(options.seed)
random.seed(options.seed)
REFETCH = 64 * MIB  # as the server counts: with what sockets hold, which the service never saw


class Disk:
    def __init__(self, folder):
        self.image, self.mount_point, self.blocked = folder + "/disk.img", folder + "/m", None
        os.mkdir(self.mount_point)
        self.is_mounted = False

    def make(self):
        self.unmount()
        if os.path.exists(self.image):
            os.remove(self.image)
        with open(self.image, "wb") as file:
            file.truncate(1536 * MIB)
        kind = ["-F", "-E", "lazy_itable_init=0,nodiscard"] if options.fs == "ext4" else ["-f"]
        subprocess.run([f"mkfs.{options.fs}", "-q", *kind, self.image], check=True)
        self.mount()

    def mount(self):
        how = "loop,noauto_da_alloc,commit=600" if options.fs == "ext4" else "loop"
        subprocess.run(["mount", "-t", options.fs, "-o", how, self.image, self.mount_point], check=True)
        self.is_mounted, self.device = True, os.stat(self.mount_point).st_dev
        with open("/proc/mounts") as mounts:
            self.source = next(l.split()[0] for l in mounts if l.split()[1] == self.mount_point)

    def cut(self):
        descriptor = os.open(self.mount_point, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.ioctl(descriptor, 0x8004587D, struct.pack("I", 2))  # FS_IOC_SHUTDOWN: 2 = do not even flush the log
        os.close(descriptor)

    def unmount(self):
        for _ in range(100):
            if not self.is_mounted:
                return
            done = subprocess.run(["umount", self.mount_point], capture_output=True, text=True)
            self.is_mounted = done.returncode != 0
            if self.is_mounted:
                time.sleep(0.05)
        raise RuntimeError(done.stderr)

    def back(self):
        device = self.device
        self.unmount()
        if options.move_device:
            self.block()
        self.mount()
        if options.move_device:
            self.release()
            if self.device == device:
                print("note: the device number stayed")

    def block(self):
        """Gives the loop device that was ours to another image; the kernel lets go of it some time after."""
        with open(self.image + ".other", "wb") as file:
            file.truncate(MIB)
        while subprocess.run(["losetup", self.source, self.image + ".other"], capture_output=True).returncode != 0:
            time.sleep(0.02)
        self.blocked = self.source

    def release(self):
        if self.blocked:
            subprocess.run(["losetup", "-d", self.blocked], check=True)
        self.blocked = None


class Trial:
    def __init__(self, folder):
        self.disk, self.origin = Disk(folder), lab.Origin()
        self.queue = lab.Queue(self.disk.mount_point + "/s", folder + "/h")
        self.cuts, self.broken, self.figures = 0, [], collections.Counter()
        self.refetched, self.round, self.gone = [], 0, set()

    def fresh(self):
        self.disk.make()
        self.gone = set()  # files of finished jobs that were removed by hand
        self.origin.objects, self.origin.log = {}, []

    def expect(self, holds, what):
        if not holds:
            self.broken.append(f"round {self.round}: {what}")
            print("BROKEN", self.broken[-1], flush=True)

    # What commands are told, and so what must stay true.

    def begin_round(self):
        self.round += 1
        # A folder of its own that does not exist yet, for the service to make.
        self.target = f"{self.disk.mount_point}/d{self.round}"
        self.plan = []
        for number in range(chance.randint(6, 12)):
            size = int(2 ** chance.uniform(10, 26.7)) if number else chance.randint(40 * MIB, 100 * MIB)
            rate = chance.choice([2, 6, 15, 40, None])
            self.plan.append(lab.Object(f"r{self.round}-{number}.bin", size, rate and rate * MIB))
        chance.shuffle(self.plan)
        self.told, self.cancelled, self.seen = {}, set(), {}
        self.over, self.cut_at = False, None
        self.processes, self.process_lock = set(), threading.Lock()

    def command(self, *arguments):
        """Runs a command that the cut ends; gives what it printed, with its status, if that came before the cut."""
        with self.process_lock:
            if self.over:
                return "", None
            process = self.queue.command(*arguments)
            self.processes.add(process)
        out, _ = process.communicate()
        ended = time.monotonic()
        with self.process_lock:
            self.processes.discard(process)
            if self.cut_at is not None and ended >= self.cut_at:
                self.figures["commands whose answer came with the cut"] += process.returncode == 0
                return "", None
        return out, process.returncode

    def add(self, pauses, cancels):
        for item, pause, cancel in zip(self.plan, pauses, cancels):
            out, _ = self.command("add", "-d", self.target, self.origin.add(item))
            for line in out.split():
                self.told[int(line)] = item
                self.figures["numbers told before a cut"] += 1
                if cancel is not None:
                    threading.Thread(target=self.cancel, args=(int(line), cancel)).start()
            if self.over:
                return
            time.sleep(pause)

    def cancel(self, job, pause):
        time.sleep(pause)
        _, status = self.command("cancel", str(job))
        if status == 0:
            self.cancelled.add(job)

    def watch(self):
        while not self.over:
            out, status = self.command("list", "--json", "--all")
            if status == 0:
                for job in lab.json.loads(out)["jobs"]:
                    self.seen[job["id"]] = (job["state"], job["bytes_durable"])
            time.sleep(0.03)

    def ends(self):
        """The objects whose partial has its whole size, and those that have their final name, just now."""
        sizes, whole, named = {o.name: o.size for o in self.plan}, set(), set()
        try:
            with os.scandir(self.target) as entries:
                for entry in entries:
                    name = entry.name[1:].rsplit(".", 2)[0]
                    if not entry.name.startswith("."):
                        named.add(entry.name)
                    elif entry.stat().st_size == sizes.get(name):
                        whole.add(name)
        except OSError:
            pass  # the folder or the file is not there, or not any more
        return whole, named

    def await_end_of_a_job(self, is_named, nth, limit):
        """Returns when the nth file has its whole size, or its final name; false if the time is over."""
        over = time.monotonic() + limit
        while time.monotonic() < over:
            whole, named = self.ends()
            if len(named) + (0 if is_named else len(whole)) >= nth:
                return True
            time.sleep(0.0005)
        return False

    def work_until_cut(self, moment, aim, dying):
        """Adds, cancels and looks while the service works, and cuts the power."""
        threads = []
        if self.plan and not self.told:
            pauses = [chance.uniform(0, 0.15) for _ in self.plan]
            cancels = [chance.uniform(0, 1) if chance.random() < 0.25 else None for _ in self.plan]
            threads.append(threading.Thread(target=self.add, args=(pauses, cancels)))
        threads.append(threading.Thread(target=self.watch))
        self.over, self.cut_at = False, None
        for thread in threads:
            thread.start()
        if aim is None:
            time.sleep(moment)
        else:
            is_named, nth, later = aim
            if self.await_end_of_a_job(is_named, nth, 8):
                self.figures["cuts aimed at " + ("a rename" if is_named else "the end of a body")] += 1
                time.sleep(later)
        with self.process_lock:
            self.cut_at = time.monotonic()
        self.whole, self.named = self.ends()
        self.disk.cut()
        self.cuts += 1
        time.sleep(dying)  # commands and service go on for a while on a dead disk
        with self.process_lock:
            self.over = True
            for process in self.processes:
                process.kill()
        self.figures["the service had ended by itself"] += self.queue.daemon.poll() is not None
        self.queue.kill()
        for thread in threads:
            thread.join()
        while any(t.name.startswith("Thread") and t._target == self.cancel for t in threading.enumerate()):
            time.sleep(0.01)
        self.disk.back()

    # What survived.

    def look(self, is_end):
        records = lab.Records(self.queue.state)
        self.expect(records.sound == "ok", f"the database is unsound: {records.sound}")
        jobs, here = records.jobs, lambda j: (j["path"] or "").startswith(self.target + "/")
        names = os.listdir(self.target) if os.path.isdir(self.target) else []
        for job in self.told:
            self.expect(job in jobs, f"job {job} was told and is not in the list")
        for job in self.cancelled:
            state = jobs[job]["state"] if job in jobs else None
            self.expect(state == "cancelled", f"'cancel {job}' ended well and the job is {state}")
        for job, (state, durable) in self.seen.items():
            if job not in jobs:
                self.expect(False, f"job {job} was listed and is gone")
                continue
            now = jobs[job]
            if state in ("completed", "cancelled", "failed"):
                self.expect(now["state"] == state, f"job {job} was listed {state} and is {now['state']}")
            if state != "cancelled":
                self.expect(now["bytes_durable"] >= durable or now["state"] == "cancelled",
                            f"job {job}: {durable} bytes were listed durable, now {now['bytes_durable']}")
        for name in names:
            if not name.startswith("."):
                item = self.origin.objects.get(name)
                why = item.differs(f"{self.target}/{name}") if item else "nobody asked for it"
                self.expect(why is None, f"{name} under its final name: {why}")
        for job in jobs.values():
            if job["state"] == "completed" and job["id"] not in self.gone:
                self.expect(os.path.exists(job["path"]), f"job {job['id']} is completed without {job['path']}")
                self.expect(records.completions.get(job["id"]) == 1,
                            f"job {job['id']} has {records.completions.get(job['id'])} events 'completed'")
            if job["state"] == "cancelled":
                left = [n for n in names if n.endswith(f".{job['id']}.ferry-part")]
                self.expect(not left, f"job {job['id']} is cancelled and left {left}")
        for segment in records.segments:
            job = jobs[segment["job"]]
            is_over = job["state"] in ("completed", "cancelled") or job["id"] in records.cancelling
            if segment["durable"] == 0 or job["id"] in self.gone or is_over:
                continue
            item = self.origin.objects[job["url"].rsplit("/", 1)[1]]
            path = f"{segment['directory']}/{segment['partial_name']}"
            if not os.path.exists(path):
                path = f"{segment['directory']}/{segment['name']}"
            why = item.differs(path, segment["durable"]) if os.path.exists(path) else "there is no partial"
            what = f"job {job['id']}, {job['state']}, {job['phase']}, durable up to {segment['durable']}"
            self.expect(why is None, f"{what}: {why}")
            self.figures["partials whose durable bytes were compared"] += 1
        urls = collections.Counter(j["url"] for j in jobs.values())
        self.expect(max(urls.values(), default=1) == 1, "a URL has two jobs")
        if is_end:
            for job in jobs.values():
                self.expect(job["state"] in ("completed", "cancelled"),
                            f"job {job['id']} ended {job['state']}: {job['message']}")
            wanted = sorted(os.path.basename(j["path"]) for j in jobs.values() if j["state"] == "completed" and here(j))
            self.expect(sorted(names) == wanted, f"the folder holds {sorted(names)}, not {wanted}")
        else:
            for job in jobs.values():
                if job["id"] not in self.gone:
                    what = job["state"] if job["state"] != "running" else f"running, {job['phase']}"
                    self.figures["found " + what] += 1
            left = {j["url"].rsplit("/", 1)[1] for j in jobs.values() if j["state"] == "running"}
            self.figures["cuts between a whole body and its job's end"] += bool(left & (self.whole | self.named))
            self.figures["cuts between a rename and its job's end"] += bool(left & self.named)
            self.figures["accepted and not told"] += len([j for j in jobs if j not in self.told and j not in self.gone])
        return records

    def measure_refetch(self, since):
        for item in self.plan:
            reached = 0
            for request in self.origin.requests(item.name):
                if reached and request.at >= since:
                    again = max(0, reached - request.first)
                    self.refetched.append(again)
                    self.expect(again <= REFETCH, f"{item.name}: {again} bytes were fetched again")
                reached = max(reached, request.end)

    def run_round(self, cuts_left):
        self.begin_round()
        self.origin.paced = True
        begun = time.monotonic()
        for number in range(min(cuts_left, chance.randint(1, 5))):
            try:
                self.queue.start()
            except RuntimeError as error:
                self.expect(False, f"the next service did not start: {error}")
                return
            moment = chance.uniform(0.02, chance.choice([1.5, 4.5]) if number == 0 else 0.8)
            is_named = chance.random() < 0.5
            aim = is_named, chance.randint(1, len(self.plan)), chance.uniform(0, 0.004 if is_named else 0.04)
            self.work_until_cut(moment, aim if chance.random() < 0.5 else None,
                                chance.choice([0, 0, chance.uniform(0, 0.4)]))
            self.look(is_end=False)
        self.origin.paced = False
        try:
            self.queue.start()
            self.queue.wait_until_idle()
        except RuntimeError as error:
            self.expect(False, str(error))
        self.queue.kill(15)
        records = self.look(is_end=True)
        self.measure_refetch(begun)
        done = [j for j in records.jobs.values() if j["id"] not in self.gone]
        self.figures["jobs completed"] += sum(j["state"] == "completed" for j in done)
        self.figures["jobs cancelled"] += sum(j["state"] == "cancelled" for j in done)
        self.gone |= set(records.jobs)
        shutil.rmtree(self.target, ignore_errors=True)


WRITER = """
import os, sys
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
folder = os.open(os.path.dirname(sys.argv[1]), os.O_RDONLY)
os.fsync(folder)
number = 0
try:
    while True:
        os.pwrite(file, b'%07d\\n' % number * 1024, number * 8192)
        os.fdatasync(file)
        number += 1
        print(number, flush=True)
except OSError:
    pass
"""


def control(disk):
    """Cuts under a plain writer, and counts what was confirmed and is lost: by when it was told."""
    disk.make()
    last, earlier = 0, 0
    for cut in range(options.cuts):
        path = f"{disk.mount_point}/w{cut}"
        writer = subprocess.Popen([sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, cwd="/")
        told = []
        reader = threading.Thread(target=lambda: told.extend((int(l), time.monotonic()) for l in writer.stdout))
        reader.start()
        time.sleep(chance.uniform(0.05, 0.2))
        at = time.monotonic()
        disk.cut()
        writer.kill()
        writer.wait()
        reader.join()
        disk.back()
        there = os.path.getsize(path) // 8192 if os.path.exists(path) else 0
        last += any(number > there and when >= at for number, when in told)
        earlier += any(number > there and when < at for number, when in told)
        if os.path.exists(path):
            os.remove(path)
    print(f"{options.fs}, seed {options.seed}, a plain writer: {options.cuts} cuts; "
          f"a confirmed sync was lost that ended after the cut began: {last}; before it began: {earlier}")


def main():
    if os.geteuid() != 0:
        sys.exit("power cuts need root, for loop devices")
    for program, package in ((f"mkfs.{options.fs}", "e2fsprogs" if options.fs == "ext4" else "xfsprogs"),):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing: apt-get install {package}")
    lab.Object.fill(options.seed, 192 * MIB)
    folder = lab.scratch()
    trial, begun = Trial(folder), time.monotonic()
    if options.control:
        try:
            control(trial.disk)
        finally:
            trial.disk.unmount()
            shutil.rmtree(folder)
        return
    try:
        while trial.cuts < options.cuts:
            if trial.round % 4 == 0:
                trial.fresh()
            trial.run_round(options.cuts - trial.cuts)
            if trial.round % 10 == 0:
                print(f"… {trial.cuts} cuts, {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        trial.queue.kill()
        trial.disk.unmount()
        trial.disk.release()
        shutil.rmtree(folder)
    print(f"{options.fs}, seed {options.seed}: {trial.cuts} cuts in {trial.round} rounds, "
          f"{time.monotonic() - begun:.0f} s, {len(trial.broken)} promises broken")
    for what, count in sorted(trial.figures.items()):
        print(f"  {what}: {count}")
    again = sorted(trial.refetched)
    if again:
        print(f"  fetched again after a cut, MiB a file: median {again[len(again) // 2] / MIB:.1f}, "
              f"most {again[-1] / MIB:.1f} ({len(again)} resumed)")
    sys.exit(1 if trial.broken else 0)


main()
