#!/usr/bin/env python3
"""Does the database ever claim what the disk does not hold? For every commit of real downloads, exactly.

  sync-order.py [--scenarios A,B,…] [--control] [--keep]

A daemon downloads under strace. Its trace is then played on a model of the disk on which nothing is durable but
what was synced: a byte of a file if its write had returned before a sync of the file began that succeeded; a name if
it was there before a sync of its folder began. Writes of the database are in the trace with their contents, so that
at each of its syncs the file is rebuilt, twice: *eager*, with all that was written so far, which the kernel may have
brought to the disk long before the sync; and *lazy*, with nothing but what was synced. SQLite opens both, and each
claim in them is held against the model: for the eager one as it was when the first byte of the commit was written,
for the lazy one at the end of the sync.
  a  bytes below a durable offset are durable, and no later write touches them
  b  a completed job's file was whole and durable before it got its name; the name is durable, the size right
  c  a partial with an inode has a durable name, and that inode
  d  the database is sound
  e  after a sync of its log, and ever after, the lazy database has every event that the eager one had at its beginning
Afterwards the model's files and database are compared with the real ones: a call that the trace lacks would show.
With --control the checker is checked: the traces of single downloads are played again and again, and each time one
write or one sync of a file or folder is left out, or counts only after the next commit; each must be found.

What a killed service had in a call counts as done, for the next one reads back what it is to believe. Not seen: writes
through mappings (the progress board, which nothing believes), and folders that `ferry add -d` makes.
Needs strace and ptrace. Exit status 1 if a claim did not hold, or a control was not found.
"""
import argparse, bisect, collections, hashlib, os, random, re, shutil, sqlite3, sys, time
import lab
from lab import MIB

CALLS = ("open,openat,openat2,creat,write,writev,pwrite64,pwritev,pwritev2,copy_file_range,sendfile,splice,truncate,"
         "ftruncate,fallocate,fsync,fdatasync,sync_file_range,syncfs,sync,rename,renameat,renameat2,unlink,unlinkat,"
         "link,linkat,fstat,newfstatat,statx")
PAGE = 4096  # the longest write of the database: strace shows that much of each write, and no more of a slab
DATABASE = "/jobs.db"
RECORDS = re.compile(DATABASE + "(-wal|-journal)?$")
HEAD = re.compile(r"(\w+)\((?:(?:\d+|AT_FDCWD)<([^>]*)>(?:\(deleted\))?)?")
END = re.compile(r"\)\s+= (-?\d+|\?)(?:<([^>]*)>)?[^\"<>]*$")
PATHS = re.compile(r'(?:(?:AT_FDCWD|\d+)<([^>]*)>, )?"([^"]*)"')


def plain(text):
    return bytes.fromhex(text.replace("\\x", ""))


class Ranges:
    """Disjoint ranges of bytes, sorted."""

    def __init__(self):
        self.items = []

    def cut(self, start, stop):
        parts = [part for a, b in self.items for part in ((a, min(b, start)), (max(a, stop), b))]
        self.items = [part for part in parts if part[0] < part[1]]

    def add(self, start, stop):
        if start >= stop:
            return
        for a, b in [(a, b) for a, b in self.items if a <= stop and start <= b]:
            start, stop = min(a, start), max(b, stop)
        self.cut(start, stop)
        bisect.insort(self.items, (start, stop))

    def reach(self, start):
        """The end of what is there from an offset on, without a hole."""
        return next((b for a, b in self.items if a <= start < b), start)


class File:
    def __init__(self, path):
        self.path, self.inode = path, None
        self.safe, self.size, self.safe_size = Ranges(), 0, 0
        self.flying = {}  # writes that have not returned, by thread
        self.waiting = []  # (line of the return, first byte, end, contents), since the last sync
        self.names = {path: False}  # whether the name is durable
        self.finals = {}  # names that it was given by rename: [was whole, name is durable]
        self.keeps = bool(RECORDS.search(path))
        self.eager, self.lazy = bytearray(), bytearray()

    def is_whole(self):
        return (self.size == self.safe_size and not self.flying and not self.waiting
                and self.safe.reach(0) >= self.size)

    def facts(self):
        return self.safe.reach(0), any(self.names.values()), {p: tuple(f) for p, f in self.finals.items()}


def write(content, first, data):
    if len(content) < first:
        content.extend(bytes(first - len(content)))
    content[first:first + len(data)] = data


class Checker:
    """Plays traces. `without` are lines of the trace that do not count, `late` those that count after a commit."""

    def __init__(self, state, out, without=(), late=()):
        self.state, self.out, self.without, self.late = state, out, without, late
        self.at, self.made, self.folders, self.delayed = {}, {}, {}, []
        self.number, self.violations, self.told = 0, [], set()
        self.phase = None
        self.commits = self.views = self.checks = 0
        self.claims, self.low, self.early = None, {}, None
        self.seen = {"eager": None, "lazy": None}
        self.parsed = (None, None, 0)
        self.last, self.promised = {"eager": 0, "lazy": 0}, 0  # numbers of events
        self.useful = collections.defaultdict(list)  # kinds of calls whose loss must be found: their lines
        self.folder = lab.scratch()

    def close(self):
        shutil.rmtree(self.folder)

    def broken(self, key, text):
        if key not in self.told:
            self.told.add(key)
            self.violations.append(f"line {self.number}: {text}")

    # Reading the trace

    def play(self, phase):
        self.phase, unfinished = phase, {}
        with open(phase.trace, encoding="ascii", errors="replace") as lines:
            for line in lines:
                self.number += 1
                thread, text = line.rstrip("\n").split(None, 1)
                if text.startswith(("+++", "---")):
                    continue
                if text.endswith("<unfinished ...>"):
                    text = text[:-16]
                    unfinished[thread] = self.begin(thread, text), text
                elif text.startswith("<... "):
                    begun, before = unfinished.pop(thread)
                    self.end(thread, begun, before + text[text.index("resumed>") + 8:])
                else:
                    self.end(thread, self.begin(thread, text), text)
        for thread, (begun, text) in unfinished.items():
            self.interrupted(thread, begun, text)
        self.look("eager", self.early)
        self.look("lazy", None)
        self.early = None
        self.compare()

    def begin(self, thread, text):
        """What a call may have done as soon as it has begun."""
        head = HEAD.match(text)
        call, path = (head.group(1), plain(head.group(2) or "").decode() if (head.group(2) or "\\x").startswith("\\x")
                      else None) if head else ("", None)
        begun = [call, path, self.number, None]
        file = self.at.get(path)
        if call in ("pwrite64", "write") and file:
            if call == "write":
                raise RuntimeError(f"line {self.number}: write() without an offset to {path}")
            first = text.index('"') + 1
            last = text.index('"', first)
            count, offset = map(int, re.match(r"(?:\.\.\.)?, (\d+), (\d+)", text[last + 1:]).groups())
            data = None
            if file.keeps:
                data = plain(text[first:last])
                if len(data) != count:
                    raise RuntimeError(f"line {self.number}: {count} bytes of {path}, the trace has {len(data)}")
                if path.endswith("-wal") and self.early is None:
                    self.early = {f: f.facts() for f in self.made.values()}
                write(file.eager, offset, data)
            begun[3] = offset, offset + count, data
            self.touch(file, offset, f"a write of {count} bytes at {offset}")
            file.flying[thread] = offset, offset + count
            file.safe.cut(offset, offset + count)
        elif call == "ftruncate" and file:
            size = int(re.search(r", (\d+)", text[head.end():]).group(1))
            begun[3] = size
            if size < file.size:
                self.touch(file, size, f"a cut to {size}")
            file.safe.cut(size, 1 << 63)
            if file.keeps:
                del file.eager[size:]
                write(file.eager, size, b"")
        elif call in ("fdatasync", "fsync") and file and file.keeps:
            self.look("eager", self.early)
            if path.endswith("-wal"):
                self.early = None
                begun[3] = self.last["eager"]
        elif call.startswith(("rename", "unlink", "link")):
            begun[3] = [os.path.join(plain(a).decode(), plain(b).decode()) for a, b in PATHS.findall(text)]
            if call.startswith("rename") and begun[3][0] in self.at:
                begun.append(self.at[begun[3][0]].is_whole())
        elif file and call in ("writev", "pwritev", "pwritev2", "copy_file_range", "sendfile", "splice", "truncate"):
            raise RuntimeError(f"line {self.number}: {call} of {path} is not modelled")
        return begun

    def end(self, thread, begun, text):
        """What a call has done when it returned."""
        call, path, line, what = begun[:4]
        found = END.search(text)
        if not found:
            return
        if found.group(1) == "?":
            return self.interrupted(thread, begun, text)
        result = int(found.group(1))
        file = self.at.get(path)
        if call == "pwrite64" and file:
            del file.flying[thread]
            if result != what[1] - what[0]:
                raise RuntimeError(f"line {self.number}: {result} bytes were written of {what[1] - what[0]}")
            self.wrote(file, what)
        elif result < 0:
            if call in ("fsync", "fdatasync") and file:
                file.waiting.clear()
        elif call in ("fsync", "fdatasync"):
            self.complete(line, lambda: self.synced(path, line))
            if path.startswith(self.state + DATABASE):
                if path.endswith("-wal"):
                    self.commits += 1
                    self.promised = max(self.promised, what)
                self.look("lazy", None)
                for action in self.delayed:
                    action()
                self.delayed.clear()
        elif call == "syncfs" or call == "sync":
            raise RuntimeError(f"line {self.number}: {call} is not modelled")
        elif call == "ftruncate" and file:
            file.size = what
            file.waiting.append((self.number, what, None, None))
        elif call == "fallocate" and file and "KEEP_SIZE" not in text:
            raise RuntimeError(f"line {self.number}: fallocate of {path} is not modelled")
        elif call in ("open", "openat", "openat2", "creat") and "O_CREAT" in text:
            self.created(plain(found.group(2)).decode())
        elif call in ("newfstatat", "fstat", "statx") and file and (inode := re.search(r"st(?:x)?_ino=(\d+)", text)):
            if call == "fstat" or '""' in text:
                file.inode = int(inode.group(1))
        elif call.startswith("rename"):
            self.renamed(*what, begun[-1])
        elif call.startswith("link"):
            self.linked(*what)
        elif call.startswith("unlink"):
            self.unlinked(what[0])

    def interrupted(self, thread, begun, text):
        """A call in which the service was killed: the disk's own word decides about names, for bytes see above."""
        call, path, _, what = begun[:4]
        files = self.phase.files
        if call == "pwrite64" and what and path in self.at:
            file = self.at[path]
            del file.flying[thread]
            first, stop = what[0], min(what[1], files.get(path, (0, 0))[1])
            if file.keeps:
                file.eager = bytearray(self.phase.database.get(path[len(self.state + DATABASE):], b""))
            if first < stop:
                self.wrote(file, (first, stop, bytes(file.eager[first:stop])))
        elif call.startswith("rename") and what[1] in files and what[0] not in files and what[0] in self.at:
            self.renamed(*what, begun[-1])
        elif call.startswith("unlink") and what[0] not in files:
            self.unlinked(what[0])
        elif call == "openat" and "O_CREAT" in text:
            for folder, name in PATHS.findall(text):
                path = os.path.join(plain(folder).decode(), plain(name).decode())
                if path in files:
                    self.created(path)

    def complete(self, line, action):
        if line in self.late:
            self.delayed.append(action)
        elif line not in self.without:
            action()

    # The model of the disk

    def wrote(self, file, what):
        file.size = max(file.size, what[1])
        if self.number in self.without:
            return
        file.waiting.append((self.number, *what))
        if not file.keeps:
            self.useful["write"].append(self.number)

    def synced(self, path, line):
        """Durable is now what had returned when the sync began."""
        if path in self.folders:
            done = [w for w in self.folders[path] if w[0] < line]
            self.folders[path] = [w for w in self.folders[path] if w[0] >= line]
            for _, kind, action in done:
                action()
                if self.state not in path:
                    self.useful["sync of the folder after " + kind].append(line)
        file = self.at.get(path)
        if file is None:
            return
        done = [w for w in file.waiting if w[0] < line]
        file.waiting = [w for w in file.waiting if w[0] >= line]
        for _, first, stop, data in done:
            if stop is None:
                file.safe_size = first
                file.safe.cut(first, 1 << 63)
                if file.keeps:
                    del file.lazy[first:]
                    write(file.lazy, first, b"")
                continue
            file.safe.add(first, stop)
            file.safe_size = max(file.safe_size, stop)
            if file.keeps:
                write(file.lazy, first, data)
        for first, stop in [w[1:3] for w in file.waiting if w[2] is not None] + list(file.flying.values()):
            file.safe.cut(first, stop)
        if done and (not file.keeps or path == self.state + DATABASE):
            self.useful["sync of the database" if file.keeps else "sync of the partial"].append(line)

    def later(self, path, kind, action):
        self.folders.setdefault(os.path.dirname(path), []).append((self.number, kind, action))

    def created(self, path):
        if path in self.at or not (path.startswith(self.out + "/") or RECORDS.search(path)):
            return
        file = self.at[path] = self.made[path] = File(path)
        self.later(path, "a creation", lambda: path in file.names and file.names.update({path: True}))

    def renamed(self, old, new, was_whole):
        file = self.at.pop(old, None)
        if file is None:
            return
        if new in self.at:
            self.at[new].names.pop(new)
        self.at[new] = file
        is_durable = file.names.pop(old)
        # In one folder a rename is one step, so that a file whose old name was durable has one of the two.
        file.names[new] = is_durable and os.path.dirname(old) == os.path.dirname(new)
        if not was_whole:
            self.broken((new, "whole"), f"b: {new} gets its name, and {file.safe.reach(0)} of its {file.size} bytes "
                                        "are durable")
        self.named(file, new, was_whole)

    def named(self, file, path, was_whole):
        final = file.finals[path] = [was_whole, False]

        def durable():
            final[1] = True
            if path in file.names:
                file.names[path] = True
        self.later(path, "a rename", durable)

    def linked(self, old, new):
        if file := self.at.get(old):
            self.at[new], file.names[new] = file, False
            self.named(file, new, file.is_whole())

    def unlinked(self, path):
        if file := self.at.pop(path, None):
            file.names.pop(path)

    # What the database says

    def content(self, view):
        found = {}
        for end in ("", "-wal", "-journal"):
            file = self.at.get(self.state + DATABASE + end)
            if file and (view == "eager" or any(file.names.values())):
                found[end] = bytes(file.eager if view == "eager" else file.lazy)
        return found

    def look(self, view, facts):
        content = self.content(view)
        if content != self.seen[view]:
            self.seen[view] = content
            self.views += 1
            if content != self.parsed[0]:
                self.parsed = content, *self.read(content, view)
            self.last[view] = self.parsed[2]
            self.hold(self.parsed[1], view, facts)
        if view == "lazy" and self.last[view] < self.promised:
            self.broken("events", f"e: the lazy database ends with event {self.last[view]}, not {self.promised}")

    def hold(self, claims, view, facts):
        if view == "eager":
            self.low = {}
        for claim in claims:
            self.check(claim, view, facts)

    def read(self, content, view):
        for end in ("", "-wal", "-journal", "-shm"):
            path = self.folder + DATABASE + end
            if os.path.exists(path):
                os.remove(path)
            if end in content:
                with open(path, "wb") as file:
                    file.write(content[end])
        database = sqlite3.connect(self.folder + DATABASE)
        database.row_factory = sqlite3.Row
        try:
            verdict = database.execute("PRAGMA quick_check").fetchone()[0]
            if verdict != "ok":
                raise sqlite3.DatabaseError(verdict)
            if not database.execute("SELECT 1 FROM sqlite_schema WHERE name = 'job'").fetchone():
                return [], 0
            last = database.execute("SELECT ifnull(max(seq), 0) FROM event").fetchone()[0]
            # What is on its way out is claimed no more: partials of jobs that are cancelled, or about to be.
            return [dict(row) for row in database.execute(
                "SELECT f.job, f.generation, f.directory, f.name, f.partial_name, f.inode, s.start, s.durable, j.state,"
                "       j.path, j.bytes_total, p.size AS published, p.inode AS published_inode"
                "  FROM job_file f JOIN job j ON j.id = f.job LEFT JOIN segment s USING (job, generation)"
                "  LEFT JOIN published p ON p.job = f.job"
                " WHERE j.kind = 'download' AND j.state <> 'cancelled'"
                "   AND f.job NOT IN (SELECT job FROM cleanup WHERE kind = 'cancel')")], last
        except sqlite3.DatabaseError as error:
            self.broken(("sound", str(error)), f"d: the {view} database: {error}")
            return [], 0
        finally:
            database.close()

    def check(self, row, view, early):
        if row["inode"] is None:
            return
        who = f"job {row['job']}, generation {row['generation']}, {view}"
        key = row["job"], row["generation"]
        file = self.made.get(f"{row['directory']}/{row['partial_name']}")
        self.checks += 1
        if file is None:
            self.broken((*key, "none"), f"c: {who}: {row['partial_name']} was never created")
            return
        if early is not None and file not in early:
            self.broken((*key, "late"), f"c: {who}: {file.path} was created after the commit had begun")
            return
        reach, has_name, finals = file.facts() if early is None else early[file]
        replaced = row["state"] == "completed"
        if not has_name and not replaced:
            self.broken((*key, "name"), f"c: {who}: no name of {file.path} is durable")
        if file.inode != row["inode"]:
            self.broken((*key, "inode"), f"c: {who}: inode {row['inode']} is claimed, {file.inode} is there")
        if row["durable"]:
            self.checks += 1
            if row["start"]:
                reach = file.safe.reach(row["start"])
            if reach < row["durable"]:
                self.broken((*key, "bytes", row["durable"]),
                            f"a: {who}: {row['durable']} bytes are claimed as durable, {reach} are")
            if view == "eager":
                self.low[file] = max(self.low.get(file, 0), row["durable"])
        if row["state"] == "completed":
            self.checks += 1
            whole, durable = finals.get(row["path"], (False, False))
            what = (f"{row['path']} never got its name" if row["path"] not in finals else
                    "it got its name before its bytes were durable" if not whole else
                    "its name is not durable" if not durable else
                    f"{row['bytes_total']} bytes in place of {file.size}" if row["bytes_total"] != file.size else
                    f"published with {row['published']} bytes in place of {file.size}"
                    if row["published"] not in (None, file.size) else
                    "published with another inode" if row["published_inode"] not in (None, file.inode) else None)
            if what:
                self.broken((*key, "completed"), f"b: {who}: completed, but {what}")

    def touch(self, file, offset, what):
        if offset < self.low.get(file, 0):
            self.broken((file, "below"), f"a: {what} of {file.path}, below the claimed {self.low[file]}")

    # Whether the model is right

    def compare(self):
        for path in sorted(self.at.keys() | self.phase.files):
            file, real = self.at.get(path), self.phase.files.get(path)
            mine = (file.inode, file.size) if file else None
            if path.startswith(self.out) and mine != real:
                self.broken((path, "model"), f"the model is wrong about {path}: {mine}, real {real}")
        for end in ("", "-wal"):
            path = self.state + DATABASE + end
            mine = bytes(self.at[path].eager) if path in self.at else None
            if mine != self.phase.database.get(end):
                self.broken((path, "model"), f"the model is wrong about the contents of {path}")


class Phase:
    """One service's life: its trace, and what was there when it had ended."""

    def __init__(self, trace, state, out):
        self.trace, self.files, self.database = trace, {}, {}
        for name in os.listdir(out):
            info = os.lstat(f"{out}/{name}")
            self.files[f"{out}/{name}"] = info.st_ino, info.st_size
        for end in ("", "-wal", "-journal"):
            if os.path.exists(state + DATABASE + end):
                with open(state + DATABASE + end, "rb") as file:
                    self.database[end] = file.read()
                self.files[state + DATABASE + end] = 0, len(self.database[end])


class Trial:
    """A queue whose services run under strace."""

    def __init__(self):
        self.folder = lab.scratch(lab.BENCH_OUT)
        self.out, self.state, self.phases = self.folder + "/out", self.folder + "/s", []
        os.mkdir(self.out)
        self.queue = lab.Queue(self.state, self.folder + "/h")
        self.queue.configure("{ limits: { running: 16, per_host: 16 } }")
        self.trace = None

    def start(self):
        self.trace = f"{self.folder}/trace-{len(self.phases)}"
        self.queue.start("strace", "-f", "-y", "-v", "-qq", "--seccomp-bpf", "-xx", "-s", str(PAGE), "-o", self.trace,
                         "-e", "signal=none", "-e", "trace=" + CALLS)

    def stop(self, number=15):
        os.kill(self.queue.serving(), number)
        self.queue.daemon.wait()
        self.phases.append(Phase(self.trace, self.state, self.out))

    def add(self, *items, options=()):
        out = self.queue.run("add", "-d", self.out, *options, *[origin.add(i) for i in items])
        return [int(line) for line in out.split()]

    def until(self, condition, limit=60):
        end = time.monotonic() + limit
        while not any(condition(job) for job in self.queue.list()):
            if time.monotonic() > end:
                raise RuntimeError(f"what was waited for did not come: {self.queue.list()}")
            time.sleep(0.02)

    def right(self, *items):
        for item in items:
            path = f"{self.out}/{item.name}"
            why = item.differs(path) if os.path.exists(path) else "is not there"
            if why:
                raise RuntimeError(f"{item.name} {why}")

    def close(self):
        self.queue.kill()
        shutil.rmtree(self.folder)


def small(trial):
    item = lab.Object("small", 3 * MIB + 12345)
    trial.start()
    trial.add(item)
    trial.queue.wait_until_idle()
    trial.right(item)
    trial.stop()


def large(trial):
    item = lab.Object("large", 200 * MIB)
    trial.start()
    trial.add(item)
    trial.queue.wait_until_idle()
    trial.right(item)
    trial.stop()


def checksum(trial):
    item, wrong = lab.Object("checksum", 40 * MIB + 7), lab.Object("wrong", 9 * MIB + 1)
    digest = hashlib.sha256(memoryview(item.pool)[item.start:item.start + item.size]).hexdigest()
    trial.start()
    trial.add(item, options=("--checksum", "sha256:" + digest))
    trial.add(wrong, options=("--checksum", "sha256:" + digest))  # fetched once more, then it fails
    trial.queue.wait_until_idle()
    trial.right(item)
    trial.stop()


def many(trial):
    items = [lab.Object(f"many-{n}", 20_000 + n * 20_000) for n in range(100)]
    trial.start()
    trial.add(*items)
    trial.queue.wait_until_idle(300)
    trial.right(*items)
    trial.stop()


def paced(trial):
    """Timers ask for syncs while bytes go on coming."""
    items = [lab.Object(f"paced-{rate}", 9 * rate * MIB // 10, rate * MIB // 10) for rate in (1, 5, 20, 80)]
    trial.start()
    trial.add(*items)
    trial.queue.wait_until_idle()
    trial.right(*items)
    trial.stop()


def killed(trial):
    items = [lab.Object("killed-0", 120 * MIB, 40 * MIB), lab.Object("killed-1", 30 * MIB, 5 * MIB),
             lab.Object("killed-2", 4 * MIB, MIB // 2)]
    trial.start()
    trial.add(*items)
    for share in (0.2, 0.5, 0.8):
        trial.until(lambda job: job["url"].endswith("killed-0") and (job["bytes_durable"] or 0) > share * items[0].size)
        trial.stop(9)
        trial.start()
    trial.queue.wait_until_idle()
    trial.right(*items)
    trial.stop()


def overwrite(trial):
    """A file of somebody else, then one of an earlier job, is replaced."""
    first, second = lab.Object("over", 5 * MIB), lab.Object("over", 7 * MIB)
    with open(f"{trial.out}/over", "w") as file:
        file.write("somebody else's")
    trial.start()
    for item in (first, second):
        trial.add(item, options=("--if-exists", "overwrite"))
        trial.queue.wait_until_idle()
        trial.right(item)
    trial.stop()


def changed(trial):
    """The object changes between two requests: a second generation overtakes the first."""
    first, second = lab.Object("changed", 90 * MIB, 30 * MIB), lab.Object("changed", 80 * MIB, 60 * MIB)
    trial.start()
    trial.add(first)
    trial.until(lambda job: (job["bytes_durable"] or 0) > 40 * MIB)
    trial.stop(9)
    origin.add(second)
    trial.start()
    trial.queue.wait_until_idle()
    trial.right(second)
    trial.stop()


def cancelled(trial):
    item, other = lab.Object("cancelled", 60 * MIB, 20 * MIB), lab.Object("other", 20 * MIB, 15 * MIB)
    trial.start()
    job = trial.add(item)[0]
    trial.add(other)
    trial.until(lambda job: job["url"].endswith("cancelled") and (job["bytes_durable"] or 0) > 20 * MIB)
    trial.queue.run("cancel", str(job))
    trial.queue.wait_until_idle()
    trial.right(other)
    trial.stop()


SCENARIOS = {s.__name__: s for s in (small, large, many, paced, killed, checksum, overwrite, changed, cancelled)}
SINGLE = ("small", "large", "overwrite")  # in these no other job's sync can stand in for one that is left out


def play(trial, **doctored):
    checker = Checker(trial.state, trial.out, **doctored)
    try:
        for phase in trial.phases:
            checker.play(phase)
        return checker
    finally:
        checker.close()


def control(name, trial, honest):
    """Doctored traces: in each one call is left out, or comes late."""
    global failed
    for kind, lines in honest.useful.items():
        lines = sorted(set(lines))
        lines = lines[::max(1, len(lines) // options.controls)]
        for how in ("without", "late") if kind != "write" and "database" not in kind else ("without",):
            found = {line: play(trial, **{how: {line}}).violations for line in lines}
            missed = [line for line in lines if not found[line]]
            failed |= bool(missed)
            print(f"  control: a {kind} {'left out' if how == 'without' else 'that comes late'}: "
                  f"{len(lines) - len(missed)} of {len(lines)} found"
                  + (f"; NOT those of lines {missed}" if missed else f", such as: {found[lines[0]][0]}"), flush=True)


parser = argparse.ArgumentParser()
parser.add_argument("--scenarios", default=",".join(SCENARIOS))
parser.add_argument("--control", action="store_true", help="check the checker, too")
parser.add_argument("--controls", type=int, default=12, help="doctored traces of each kind")
parser.add_argument("--keep", action="store_true", help="keep traces in which something was found")
options = parser.parse_args()
random.seed(1)
lab.Object.fill(1, 256 * MIB)
origin, failed, total = lab.Origin(), False, collections.Counter()

for name in options.scenarios.split(","):
    trial, begun, checker = Trial(), time.monotonic(), None
    try:
        SCENARIOS[name](trial)
        ran = time.monotonic() - begun
        checker = play(trial)
        figures = {"commits": checker.commits, "databases": checker.views, "claims": checker.checks,
                   "violations": len(checker.violations)}
        total.update(figures)
        print(f"{name}: " + ", ".join(f"{n} {w}" for w, n in figures.items()) + f" in {checker.number} calls; "
              f"{ran:.0f} s, checked in {time.monotonic() - begun - ran:.0f} s", flush=True)
        for violation in checker.violations:
            print("  VIOLATION", violation)
        failed |= bool(checker.violations) or not checker.checks
        if options.control and name in SINGLE:
            control(name, trial, checker)
    finally:
        if options.keep and (checker is None or checker.violations):
            trial.queue.kill()
            print("  kept:", trial.folder)
        else:
            trial.close()
print("in all: " + ", ".join(f"{n} {w}" for w, n in total.items()))
sys.exit(1 if failed else 0)
