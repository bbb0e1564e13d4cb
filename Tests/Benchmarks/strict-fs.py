#!/usr/bin/env python3
"""Crashes on a file system that keeps nothing but what was synced: the strictest reading of POSIX.

  strict-fs.py [--crashes N] [--seed N]

The destination lies on a FUSE file system that writes nothing back by itself: fsync of a file makes its contents
durable and nothing else, a name is durable after fsync of its folder. While the service downloads it is killed, all
that was not synced is forgotten, and the next service goes on; what is lost depends on the program alone and not on
chance. The state folder stays on a real disk: the service refuses file systems in user space for it. Checked: no wrong
file under a final name, no durable byte that is not there, no job lost or ended twice, at most 64 MiB a file fetched
again. Exit status 1 if not.

Needs /dev/fuse, libfuse3 (Debian: fuse3), and mfusepy from PyPI, best in a virtual environment:
  python3 -m venv v && v/bin/pip install mfusepy && v/bin/python Tests/Benchmarks/strict-fs.py
"""
import argparse, errno, os, random, shutil, stat, subprocess, sys, threading, time

BLOCK = 1 << 16


def serve(mount_point, store):
    import mfusepy as fuse

    class Strict(fuse.Operations):
        """`live` is what programs see; `safe` holds what would survive, by inode."""
        use_ns = True

        def __init__(self):
            self.live, self.safe_data = store + "/live", store + "/safe"
            os.makedirs(self.live)
            os.makedirs(self.safe_data)
            self.names = {}  # durable names: path -> inode, None for a folder
            self.dirty = {}  # inode -> blocks that are not durable
            self.public = {}  # inode -> the number that programs see: it survives a crash, the copy's does not
            self.open_files, self.age, self.mutex = {}, 0, threading.RLock()

        def real(self, path):
            return self.live + path

        def safe(self, inode):
            return f"{self.safe_data}/{inode}"

        def mark(self, inode, offset, count):
            if count:
                self.dirty.setdefault(inode, set()).update(range(offset // BLOCK, (offset + count - 1) // BLOCK + 1))

        def crash(self):
            self.age += 1
            self.dirty.clear()
            fresh, names, public = store + "/next", {}, {}
            os.makedirs(fresh)
            for path, inode in sorted(self.names.items()):
                if not os.path.isdir(os.path.dirname(fresh + path)):
                    continue  # its folder's own name was not durable
                if inode is None:
                    os.mkdir(fresh + path)
                    names[path] = None
                    continue
                if os.path.exists(self.safe(inode)):
                    shutil.copy2(self.safe(inode), fresh + path)
                else:
                    open(fresh + path, "wb").close()  # its name is durable, its contents never were
                copy = os.lstat(fresh + path).st_ino
                names[path], public[copy] = copy, self.public.get(inode, inode)
            shutil.rmtree(self.live)
            os.rename(fresh, self.live)
            shutil.rmtree(self.safe_data)
            os.makedirs(self.safe_data)
            self.names, self.public = names, public
            for path, inode in names.items():
                if inode is not None:
                    shutil.copy2(self.real(path), self.safe(inode))

        def file(self, handle):
            age, descriptor, inode = self.open_files[handle]
            if age != self.age:
                raise fuse.FuseOSError(errno.EIO)
            return descriptor, inode

        def remember(self, descriptor):
            self.open_files[descriptor] = (self.age, descriptor, os.fstat(descriptor).st_ino)
            return descriptor

        def getattr(self, path, fh=None):
            if path == "/.crash":
                return dict(st_mode=stat.S_IFREG | 0o600, st_nlink=1, st_size=0)
            try:
                info = os.fstat(self.file(fh)[0]) if fh in self.open_files else os.lstat(self.real(path))
            except OSError as error:
                raise fuse.FuseOSError(error.errno)
            found = {k: getattr(info, k) for k in
                     ("st_mode", "st_nlink", "st_uid", "st_gid", "st_size", "st_blocks", "st_blksize")}
            found["st_ino"] = self.public.get(info.st_ino, info.st_ino)
            return found | {k: getattr(info, k + "_ns") for k in ("st_atime", "st_mtime", "st_ctime")}

        def readdir(self, path, fh):
            # With numbers: a name whose number is 0 is none for readdir(3).
            with self.mutex, os.scandir(self.real(path)) as entries:
                found = [(e.name, e.stat(follow_symlinks=False)) for e in entries]
            found += [(name, os.lstat(self.real(path))) for name in (".", "..")]
            return [(name, dict(st_mode=i.st_mode, st_ino=self.public.get(i.st_ino, i.st_ino)), 0) for name, i in found]

        def create(self, path, mode, fi=None):
            with self.mutex:
                descriptor = os.open(self.real(path), os.O_CREAT | os.O_RDWR, mode)
                inode = os.fstat(descriptor).st_ino
                # The number of a file that is gone may be given again.
                if inode not in self.names.values() and os.path.exists(self.safe(inode)):
                    os.unlink(self.safe(inode))
                    self.public.pop(inode, None)
                return self.remember(descriptor)

        def open(self, path, flags):
            if path == "/.crash":
                return 1 << 30
            with self.mutex:
                how = os.O_RDONLY if flags & os.O_ACCMODE == os.O_RDONLY else os.O_RDWR
                descriptor = os.open(self.real(path), how | flags & os.O_TRUNC)
                if flags & os.O_TRUNC:
                    self.mark(os.fstat(descriptor).st_ino, 0, 1)
                return self.remember(descriptor)

        def read(self, path, size, offset, fh):
            return b"" if fh == 1 << 30 else os.pread(self.file(fh)[0], size, offset)

        def write(self, path, data, offset, fh):
            with self.mutex:
                if fh == 1 << 30:
                    self.crash()
                    return len(data)
                descriptor, inode = self.file(fh)
                count = os.pwrite(descriptor, data, offset)
                self.mark(inode, offset, count)
                return count

        def truncate(self, path, length, fh=None):
            if path == "/.crash":
                return
            with self.mutex:
                if fh in self.open_files:
                    descriptor, inode = self.file(fh)
                    os.ftruncate(descriptor, length)
                else:
                    inode = os.lstat(self.real(path)).st_ino
                    os.truncate(self.real(path), length)
                self.mark(inode, max(0, length - 1), 1)

        def fsync(self, path, datasync, fh):
            with self.mutex:
                descriptor, inode = self.file(fh)
                with open(self.safe(inode), "r+b" if os.path.exists(self.safe(inode)) else "w+b") as copy:
                    for block in sorted(self.dirty.pop(inode, ())):
                        copy.seek(block * BLOCK)
                        copy.write(os.pread(descriptor, BLOCK, block * BLOCK))
                    copy.truncate(os.fstat(descriptor).st_size)

        def fsyncdir(self, path, datasync, fh):
            with self.mutex:
                for name in [n for n in self.names if os.path.dirname(n) == path]:
                    del self.names[name]
                for entry in os.scandir(self.real(path)):
                    is_folder = entry.is_dir(follow_symlinks=False)
                    self.names[path.rstrip("/") + "/" + entry.name] = None if is_folder else entry.inode()

        def release(self, path, fh):
            if self.open_files.pop(fh, None):
                os.close(fh)

        def rename(self, old, new, flags=0):
            with self.mutex:
                if flags & 1 and os.path.lexists(self.real(new)):
                    raise fuse.FuseOSError(errno.EEXIST)
                os.rename(self.real(old), self.real(new))

        def statfs(self, path):
            info = os.statvfs(self.live)
            return {k: getattr(info, k) for k in
                    ("f_bsize", "f_frsize", "f_blocks", "f_bfree", "f_bavail", "f_files", "f_ffree", "f_namemax")}

        def access(self, path, mode):
            return 0

        def flush(self, path, fh):
            return 0

        def unlink(self, path):
            os.unlink(self.real(path))

        def mkdir(self, path, mode):
            os.mkdir(self.real(path), mode)

        def rmdir(self, path):
            os.rmdir(self.real(path))

        def link(self, target, source):
            os.link(self.real(source), self.real(target))

        def chmod(self, path, mode):
            os.chmod(self.real(path), mode)

        def chown(self, path, user, group):
            os.chown(self.real(path), user, group)

        def utimens(self, path, times=None):
            os.utime(self.real(path), ns=times)

    fuse.FUSE(Strict(), mount_point, foreground=True, nothreads=True, attr_timeout=0, entry_timeout=0,
              use_ino=True, fsname="strict")


if sys.argv[1:2] == ["--serve"]:
    serve(*sys.argv[2:])
    sys.exit()

import lab
from lab import MIB

parser = argparse.ArgumentParser()
parser.add_argument("--crashes", type=int, default=20)
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
random.seed(options.seed)
lab.Object.fill(options.seed, 160 * MIB)
REFETCH = 64 * MIB  # as the server counts: with what sockets hold, which the service never saw

folder = lab.scratch()
mount_point = folder + "/m"
os.mkdir(mount_point)
file_system = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--serve", mount_point, folder + "/store"])
while not os.path.ismount(mount_point):
    if file_system.poll() is not None:
        sys.exit("the file system cannot be mounted: see what this script needs")
    time.sleep(0.01)
queue = lab.Queue(folder + "/s", folder + "/h")
origin, told, broken, again, crashes = lab.Origin(), {}, [], [], 0


def expect(holds, what):
    if not holds:
        broken.append(what)
        print("BROKEN", what, flush=True)


def crash():
    with open(mount_point + "/.crash", "r+") as control:
        control.write("crash\n")


def look(target, plan):
    """What survived, with no service running."""
    records = lab.Records(queue.state)
    expect(records.sound == "ok", f"the database is unsound: {records.sound}")
    for job in told:
        expect(job in records.jobs, f"job {job} was told and is gone")
    for name in os.listdir(target) if os.path.isdir(target) else []:
        if not name.startswith("."):
            why = plan[name].differs(f"{target}/{name}") if name in plan else "nobody asked for it"
            expect(why is None, f"{name} under its final name: {why}")
    for job in records.jobs.values():
        if job["state"] == "completed":
            expect(os.path.exists(job["path"]), f"job {job['id']} is completed without its file")
            expect(records.completions.get(job["id"]) == 1, f"job {job['id']} was completed more than once")
    for row in records.segments:
        job = records.jobs[row["job"]]
        if row["durable"] and job["state"] != "completed":
            path = f"{row['directory']}/{row['partial_name']}"
            path = path if os.path.exists(path) else f"{row['directory']}/{row['name']}"
            why = origin.objects[job["url"].rsplit("/", 1)[1]].differs(path, row["durable"])
            expect(why is None, f"job {job['id']}, durable up to {row['durable']}: {why}")
    return records


try:
    begun, number = time.monotonic(), 0
    while crashes < options.crashes:
        number += 1
        target = f"{mount_point}/d{number}"
        plan = {}
        for index in range(chance.randint(3, 6)):
            size = int(2 ** chance.uniform(10, 24)) if index else chance.randint(40 * MIB, 90 * MIB)
            plan[f"r{number}-{index}"] = lab.Object(f"r{number}-{index}", size, chance.choice([4, 12, 40]) * MIB)
        origin.paced = True
        queue.start()
        out = queue.run("add", "-d", target, *[origin.add(o) for o in plan.values()])
        told |= dict(zip(map(int, out.split()), plan.values()))
        for _ in range(chance.randint(1, 3)):
            time.sleep(chance.uniform(0.05, chance.choice([0.5, 4])))
            queue.kill()
            crash()
            crashes += 1
            look(target, plan)
            queue.start()
        origin.paced = False
        queue.wait_until_idle(600)
        queue.kill(15)
        crash()  # whatever is said to be done must survive without a word of warning
        records = look(target, plan)
        for job, item in told.items():
            if item.name in plan:
                state = records.jobs[job]["state"]
                expect(state == "completed", f"job {job} ended {state}: {records.jobs[job]['message']}")
        for item in plan.values():
            reached = 0
            for request in origin.requests(item.name):
                if reached:
                    again.append(max(0, reached - request.first))
                    expect(again[-1] <= REFETCH, f"{item.name}: {again[-1]} bytes were fetched again")
                reached = max(reached, request.end)
            os.remove(f"{target}/{item.name}")
        told.clear()
        queue.start()
        queue.run("remove", *[str(j) for j in records.jobs])
        queue.kill(15)
finally:
    queue.kill()
    subprocess.run(["fusermount3", "-u", "-z", mount_point])
    file_system.wait()
    shutil.rmtree(folder)
again.sort()
print(f"seed {options.seed}: {crashes} crashes in {number} rounds, {time.monotonic() - begun:.0f} s, "
      f"{len(broken)} promises broken")
if again:
    print(f"  fetched again after a crash, MiB a file: median {again[len(again) // 2] / MIB:.1f}, "
          f"most {again[-1] / MIB:.1f} ({len(again)} resumed)")
sys.exit(1 if broken else 0)
