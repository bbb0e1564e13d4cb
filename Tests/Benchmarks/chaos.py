#!/usr/bin/env python3
"""Random downloads from a server whose every answer is drawn at random, by users and a service who do anything.

  chaos.py [--seed N] [--minutes M] [--rounds N] [--objects N] [--verbose]

A round has a seed, a new queue and some 300 objects. Each object has a regime of validators (strong or weak tag,
strong or weak date, none), a history of versions that changes between requests, and a class: `clean` ones make no
faults, `hostile` ones draw each answer from what servers do wrong (cuts, stalls, wrong ranges, portals, codings,
damaged bodies with a right digest, redirects, 1xx, refusals), `lying` ones give one strong tag to different bytes, for
which the user has a checksum. Where a validator is strong the others never give it to different bytes; where it is not,
versions differ everywhere, so that comparing the overlap always tells them apart. Meanwhile jobs are added, steered and
changed, and the service is killed (SIGKILL) or stopped (SIGTERM) again and again.

Then the faults end, all is resumed and retried, and every job must complete soon. Checked: a file is exactly one
version that the server had (or the coded or cut body that the job says it is), has the user's checksum, and nothing is
left beside it; what stood there before is untouched unless it was to be overwritten; each accepted job is there and
completed once; a failure's reason has a cause in what was answered; after a kill the next request for a clean object
begins where its partial ended, or less than one write before; the service ends only by our signals.

A problem prints the round's seed and all answers for that object; `--seed N --rounds 1` draws the same again, though
not with the same timing. Exit status 1 if there was any.
"""
import argparse, base64, collections, email.utils, gzip, hashlib, os, random, re, shutil, socket, struct, sys
import threading, time, lab

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--minutes", type=float, default=5)
parser.add_argument("--rounds", type=int, default=0, help="end after so many rounds")
parser.add_argument("--objects", type=int, default=300)
parser.add_argument("--verbose", action="store_true")
options = parser.parse_args()

POOL = random.Random(0).randbytes(24 * lab.MIB)
WRITE = 256 * 1024  # what the service writes at once, at most
PAGE = b"<!doctype html><title>Sign in</title>" + b"<p>Please sign in to go on.</p>" * 40
OLD = b"what was there before"
RETRY = '{ limits: { running: 40, per_host: 12 }, retry: { base: "20ms", cap: "300ms" } }'
figures = collections.Counter()


class Thing:
    """An object: its versions, and how its server behaves."""

    def __init__(self, seed, number):
        self.random = random.Random(f"{seed}/{number}")
        pick = self.random
        self.seed, self.number, self.name = seed, number, f"o{number}.bin"
        self.kind = pick.choices(["clean", "hostile", "lying"], [25, 67, 8])[0]
        regimes = ["tag", "weak-tag", "date", "weak-date", "none"]
        self.regime = "tag" if self.kind == "lying" else pick.choices(regimes, [40, 12, 22, 12, 14])[0]
        self.strong = self.regime in ("tag", "date")
        self.size = pick.choice([0, 1, pick.randint(2, 5000), 65536, 65537, pick.randint(300_000, 1 << 20),
                                 pick.randint(1 << 20, 3 << 20), *[pick.randint(60_000, 300_000)] * 4])
        self.rate = pick.choice([None, self.size / pick.uniform(0.2, 1), self.size / pick.uniform(0.5, 4)])
        self.changing = self.kind != "clean" and pick.random() < 0.7
        # Versions that differ in a few bytes can only be told apart by a validator.
        self.subtle = self.strong and pick.random() < 0.5
        self.constant = pick.random() < 0.5  # whether a weak validator stays as it is
        self.type = pick.choice(["application/octet-stream"] * 3 + [None])
        self.sticky = pick.choice([None] * 4 + ["no-ranges", "chunked", "digest", "close"])
        self.versions, self.coded, self.cuts = [self.slice(self.size)], set(), set()
        self.current = self.checked = 0
        self.log, self.lock, self.requests, self.expected = [], threading.Lock(), 0, None

    def slice(self, size):
        return POOL[(start := self.random.randrange(len(POOL) - size)):start + size]

    def change(self):
        """Another version from now on: a new one, or one of old."""
        pick = self.random.random()
        if pick < 0.3 and len(self.versions) > 1:
            self.current = self.random.randrange(len(self.versions))
            return
        size = len(self.versions[self.current])
        if self.kind != "lying" and pick < 0.45:
            size = max(0, size + self.random.choice([-1, 1]) * self.random.randint(1, 1 + size // 2))
        data = self.slice(size)
        if self.subtle and size:
            # A longer or shorter version begins as the last one did.
            data = bytearray((self.versions[self.current] + data)[:size])
            for _ in range(3):
                data[self.random.randrange(size)] ^= 0x55
        self.versions.append(bytes(data))
        self.current = len(self.versions) - 1

    def validators(self, version):
        """The header fields, the same for the same bytes."""
        mark = 0 if self.kind == "lying" else self.versions.index(self.versions[version])
        now = time.time()
        if self.regime == "tag":
            return [("ETag", f'"{self.number}-{mark}"'), ("Date", email.utils.formatdate(now, usegmt=True))]
        if self.regime == "weak-tag":
            return [("ETag", f'W/"{self.number}-{0 if self.constant else mark}"')]
        changed = email.utils.formatdate(1_700_000_000 + (0 if self.constant else mark), usegmt=True)
        if self.regime == "date":
            changed = email.utils.formatdate(1_700_000_000 + 3600 * mark, usegmt=True)
            return [("Last-Modified", changed), ("Date", email.utils.formatdate(now, usegmt=True))]
        return [("Last-Modified", changed), ("Date", changed)] if self.regime == "weak-date" else []

    def note(self, server, text):
        self.log.append((time.monotonic() - server.begun, text))

    def told(self):
        return "\n".join(f"      {at:8.3f} {text}" for at, text in self.log[-60:])


class Server:
    """HTTP/1.1 on a few ports of 127.0.0.1 (a pause that is asked for holds for one of them), a thread a connection."""
    REFUSALS = ["404", "412", "429", "503", "500", "redirect", "portal"]
    RANGED = ["whole", "early", "late", "short", "star", "total", "no-range", "length", "416", "416-wrong", "416-bare",
              "page", "multipart", "other-206", "other-206-bare", "same-206-bare", "damaged"]
    ANY = ["gzip", "chunked", "trailer", "close", "early-hints", "digest", "md5", "damaged", "two-lengths", "bare-tag"]
    CUTS = ["fin", "rst", "stall", "none", "none", "none"]

    def __init__(self, things):
        self.things, self.faults, self.begun = things, True, time.monotonic()
        self.listeners = [socket.create_server(("127.0.0.1", 0), backlog=512) for _ in range(5)]
        for listener in self.listeners:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 64 * 1024)
            threading.Thread(target=self.accept, args=(listener,), daemon=True).start()

    def url(self, thing, prefix=""):
        port = self.listeners[thing.number % len(self.listeners)].getsockname()[1]
        return f"http://127.0.0.1:{port}/{prefix}{thing.name}"

    def accept(self, listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            lines = connection.makefile("rb")
            while True:
                head = []
                while (line := lines.readline()) != b"\r\n":
                    if not line:
                        return
                    head.append(line.decode("latin-1").rstrip("\r\n"))
                fields = dict((k.lower(), v.strip()) for k, v in (l.split(":", 1) for l in head[1:]))
                if not self.answer(connection, head[0].split()[1], fields):
                    return
        except OSError:
            pass
        finally:
            connection.close()

    def answer(self, connection, path, fields):
        """Draws an answer and gives it; false if the connection ends with it."""
        thing = self.things[int(re.search(r"o(\d+)", path)[1])]
        offset = int(fields["range"].split("=")[1].split("-")[0]) if "range" in fields else 0
        with thing.lock:
            pick = random.Random(f"{thing.seed}/{thing.number}/{thing.requests}")
            thing.requests += 1
            figures["answers"] += 1
            hostile = self.faults and thing.kind != "clean"
            if hostile and thing.changing and thing.requests > 1 and pick.random() < 0.3:
                thing.change()
            version = thing.current
            body = thing.versions[version]
            expected, thing.expected = thing.expected, None
            if expected and thing.strong:
                figures["offsets after a kill"] += 1
                figures["offsets where the partial ended"] += expected == offset
                figures["bytes asked for again"] += max(0, expected - offset)
                if not expected - WRITE < offset <= expected:
                    problem(thing, f"{expected} bytes were written when it was killed, asked from {offset}")
            fault = thing.sticky if self.faults and thing.sticky else "right"
            if hostile and pick.random() < 0.6:
                fault = pick.choice(pick.choices([self.REFUSALS, self.RANGED, self.ANY], [20, 50, 30])[0])
            cut = pick.choice(self.CUTS) if hostile and pick.random() < 0.6 else "none"
            told = f"bytes={offset}- if-range={fields.get('if-range')}" if "range" in fields else "whole"
            thing.note(self, f"{path} {told}: {fault}, version {version} of {len(body)}, cut {cut}")
            figures["fault " + fault] += 1
        if fault in self.REFUSALS or path.startswith("/portal"):
            return self.refuse(connection, thing, path, fault, pick)
        return self.body(connection, thing, fields, offset, version, body, fault, cut, pick)

    def send(self, connection, status, fields, body=b""):
        if not any(k in ("Content-Length", "Transfer-Encoding") for k, _ in fields):
            fields = [*fields, ("Content-Length", len(body))]
        connection.sendall((f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in fields) + "\r\n").encode()
                           + body)
        return True

    def refuse(self, connection, thing, path, fault, pick):
        if path.startswith("/portal"):
            return self.send(connection, "200 OK", [("Content-Type", "text/html")], PAGE)
        if fault == "portal":
            return self.send(connection, "302 Found", [("Location", f"/portal?to=o{thing.number}")], PAGE)
        if fault == "redirect":
            depth = path.count("alt/")
            target = f"/{'alt/' * (depth + 1)}{thing.name}" if depth < 3 else f"/{thing.name}"
            place = pick.choice([target, self.url(thing).rsplit("/", 1)[0] + target, "alt/" + thing.name])
            status = pick.choice(["301 Moved", "302 Found", "303 See Other", "307 Temporary", "308 Permanent"])
            return self.send(connection, status, [("Location", place)], PAGE)
        pause = [("Retry-After", pick.choice([0, 0, 1]))] if fault in ("429", "503") and pick.random() < 0.7 else []
        return self.send(connection, f"{fault} No", [("Content-Type", "text/html"), *pause], PAGE)

    def body(self, connection, thing, fields, offset, version, body, fault, cut, pick):
        tags = thing.validators(version)
        condition = fields.get("if-range")
        holds = "range" in fields and fault not in ("whole", "no-ranges", "gzip", "close") and (
            condition is None or condition in [v for _, v in tags])
        if "range" in fields and fault.startswith("other-206") and condition not in (None, *dict(tags).values()):
            # If-Range is not honoured: a part of the version of now, with its tag, or without one where the bytes tell.
            holds = fault == "other-206" or not thing.subtle
            if fault == "other-206-bare" and holds:
                tags = []
        if holds and fault in ("same-206-bare", "bare-tag"):
            tags = []
        kind = [("Content-Type", thing.type)] if thing.type else []
        if holds and fault.startswith("416"):
            total = {"416": len(body), "416-wrong": pick.choice([len(body) + 1, len(body) + 999, 0])}.get(fault)
            told = [("Content-Range", f"bytes */{total}")] if total is not None and total != offset else []
            return self.send(connection, "416 Range", [*tags, *told, ("Content-Type", "text/html")], PAGE)
        if holds and fault == "page":
            # Without a type or validator there is nothing to tell a page by; such a server says 404.
            return self.send(connection, "200 OK" if thing.type else "404 No", [("Content-Type", "text/html")], PAGE)
        if holds and offset >= len(body):
            return self.send(connection, "416 Range", [*tags, ("Content-Range", f"bytes */{len(body)}")])
        digest = base64.b64encode(hashlib.sha256(body).digest()).decode()
        first, last, status, extra, trailer = 0, len(body) - 1, "200 OK", [], b""
        if holds:
            status, first = "206 Partial Content", offset
            if fault == "early":
                first = max(0, offset - pick.choice([1, 4096, 70_000]))
            elif fault == "late":
                first = min(last, offset + pick.choice([1, 4096]))
            elif fault == "short":
                last = pick.randint(first, last)
            total = {"star": "*", "total": len(body) + pick.randint(1, 9)}.get(fault, len(body))
            if fault != "no-range":
                extra.append(("Content-Range", f"bytes {first}-{last}/{total}"))
        part = body[first:last + 1]
        if fault in ("digest", "damaged"):
            extra.append(("Repr-Digest", f"sha-256=:{digest}:"))
            if fault == "damaged" and part:
                part = bytearray(part)
                part[pick.randrange(len(part))] ^= 1
        elif fault == "md5" and not holds:
            extra.append(("Content-MD5", base64.b64encode(hashlib.md5(body).digest()).decode()))
        elif fault == "gzip":
            part = gzip.compress(body, 1, mtime=0)
            tags = [(k, v[:-1] + '-gz"') if k == "ETag" else (k, v) for k, v in tags]
            with thing.lock:
                thing.coded.add(hashlib.sha256(part).digest())
            extra.append(("Content-Encoding", "gzip"))
        elif fault == "multipart" and holds:
            extra, kind = [], [("Content-Type", "multipart/byteranges; boundary=B")]
            part = f"--B\r\nContent-Range: bytes {first}-{last}/{len(body)}\r\n\r\n".encode() + part + b"\r\n--B--\r\n"
        count, framed = len(part), "length"
        if fault in ("chunked", "trailer"):
            framed = "chunked"
            extra.append(("Transfer-Encoding", "chunked"))
            if fault == "trailer":
                extra.append(("Trailer", "Repr-Digest"))
                trailer = f"Repr-Digest: sha-256=:{digest}:\r\n".encode()
        elif fault == "close" or (fault == "length" and holds and pick.random() < 0.3):
            framed = "close"
            extra.append(("Connection", "close"))
        else:
            if fault == "length" and holds:
                count = max(0, count + pick.choice([-1, 1, -100, 5000]))
                part = bytes(part[:count]) + b"\0" * (count - len(part))
            extra.append(("Content-Length", count))
            if fault == "two-lengths":
                extra.append(("Content-Length", count + pick.choice([0, 1])))
        stop = pick.randint(0, len(part)) if cut != "none" else len(part)
        if fault == "early-hints":
            connection.sendall(b"HTTP/1.1 103 Early Hints\r\nLink: </x>; rel=preload\r\nETag: \"hint\"\r\n\r\n")
        if framed == "close" and cut in ("fin", "stall") and not holds:
            with thing.lock:
                thing.cuts.add((version, stop))  # nobody can tell it from the whole
        head = f"HTTP/1.1 {status}\r\n" + "".join(f"{k}: {v}\r\n" for k, v in [*tags, *kind, *extra]) + "\r\n"
        connection.sendall(head.encode())
        self.pour(connection, thing, memoryview(bytes(part)), stop, framed)
        thing.note(self, f"  {status[:3]} {first}-{last} sent {stop} of {len(part)}")
        if cut == "none":
            if framed == "chunked":
                connection.sendall(b"0\r\n" + trailer + b"\r\n")
            return framed != "close"
        if cut == "stall":
            time.sleep(pick.uniform(0.1, 1.5))
        if cut == "rst":
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            connection.shutdown(socket.SHUT_RDWR)
        return False

    def pour(self, connection, thing, part, stop, framed):
        begun, at = time.monotonic(), 0
        while at < stop:
            piece = part[at:min(stop, at + (16 * 1024 if thing.rate else 64 * 1024))]
            connection.sendall(b"%x\r\n" % len(piece) + bytes(piece) + b"\r\n" if framed == "chunked" else piece)
            at += len(piece)
            figures["bytes sent"] += len(piece)
            if thing.rate and self.faults:
                time.sleep(max(0, min(1, at / thing.rate - (time.monotonic() - begun))))


problems, suspects = [], set()


def problem(thing, text, job=None):
    problems.append(text)
    suspects.add(thing)
    what = f"{thing.name} ({thing.kind}, {thing.regime}, {len(thing.versions)} versions)" if thing else "round"
    print(f"BROKEN seed {seed}: {what}: {text}", flush=True)
    if job is not None:
        print("     ", {k: v for k, v in job.items() if v is not None}, flush=True)
    if thing is not None:
        print(thing.told(), flush=True)


class Round:
    """A queue, its users, and the one who kills the service."""

    def __init__(self, seed):
        self.random, self.seed = random.Random(seed), seed
        self.folder, self.out = lab.scratch(), lab.scratch(lab.BENCH_OUT)
        self.things = {n: Thing(seed, n) for n in range(options.objects)}
        self.server, self.queue = Server(self.things), lab.Queue(self.folder + "/s", self.folder + "/h")
        self.queue.configure(RETRY)
        self.jobs, self.before, self.checksums, self.cancelled = {}, {}, {}, set()
        self.over, self.busy, self.gate, self.notes = False, 0, threading.Condition(), []

    def command(self, *arguments):
        """Runs a command, though not while the service is to be dead for sure."""
        with self.gate:
            while self.busy < 0:
                self.gate.wait()
            self.busy += 1
        try:
            process = self.queue.command(*arguments)
            out, error = process.communicate(timeout=60)
            for job in {int(a) for a in arguments if a.isdigit()} & self.jobs.keys():
                self.jobs[job].note(self.server, f"{arguments}: {process.returncode} {error.strip()}")
            figures["commands"] += 1
            return process.returncode, out, error
        finally:
            with self.gate:
                self.busy -= 1
                self.gate.notify_all()

    def add(self, thing, pick):
        arguments, path = ["-q"], None
        if pick.random() < 0.4:
            path = f"{self.out}/n{thing.number}.dat"
            arguments += ["-o", path]
            if pick.random() < 0.4:
                with open(path, "wb") as file:
                    file.write(OLD)
                os.utime(path, (1e9, 1e9))
                what = pick.choice(["fail", "rename", "overwrite", "update"])
                self.before[path] = what
                arguments += ["--if-exists", what]
        else:
            arguments += ["-d", self.out]
        if thing.kind == "lying" or pick.random() < 0.15:
            thing.checked = 0
            self.checksums[thing.number] = hashlib.sha256(thing.versions[0]).hexdigest()
            arguments += ["--checksum", "sha256:" + self.checksums[thing.number]]
        if pick.random() < 0.6:
            arguments += ["--stall-timeout", "1s"]
        if pick.random() < 0.1:
            arguments += ["--attempts", "3"]
        status, out, error = self.command("add", *arguments, self.server.url(thing))
        if status == 0 and out.strip():
            self.jobs[int(out)] = thing
        elif status != 1 or self.before.get(path) != "fail":
            problem(thing, f"add: status {status}, {out!r}, {error!r}")

    def user(self, number):
        pick = random.Random(f"{self.seed}/user/{number}")
        mine = [t for t in self.things.values() if t.number % 3 == number]
        while not self.over:
            if mine and pick.random() < 0.6:
                self.add(mine.pop(), pick)
            elif self.jobs:
                job = pick.choice(list(self.jobs))
                thing = self.jobs[job]
                verb = pick.choices(["pause", "resume", "retry", "set", "cancel", "list", "url", "many"],
                                    [20, 30, 20, 12, 3, 5, 6, 4])[0]
                if verb in ("pause", "resume", "retry"):
                    self.command(verb, "-q", str(job))
                elif verb == "set":
                    self.command("set", "-q", str(job), *pick.choice([
                        ["--priority", str(pick.randint(-9, 9))], ["-l", pick.choice(["1M", "4M", "none"])],
                        ["-H", f"X-N: {pick.random()}"], ["--attempts", "0"], ["-o", f"{self.out}/m{job}.dat"]]))
                elif verb == "url" and thing.kind != "clean":
                    self.command("set", "-q", str(job), "--url", self.server.url(thing, pick.choice(["alt/", ""])))
                elif verb == "many":
                    self.command(pick.choice(["pause", "resume", "retry"]), "-q", "--all")
                elif verb == "cancel":
                    if self.command("cancel", "-q", str(job))[0] == 0:
                        self.cancelled.add(job)
                        if left := [n for n in os.listdir(self.out) if f".{job}.ferry-part" in n]:
                            problem(thing, f"job {job} was told as cancelled and has {left}")
                elif verb == "list":
                    self.command("list", "--json")
            time.sleep(pick.uniform(0, 0.05))

    def check_alive(self):
        if (status := self.queue.daemon.poll()) is not None:
            problem(None, f"the service ended by itself with status {status}: {self.queue.notes[-5:]}")
            self.start()
        for line in list(self.queue.notes):
            if re.search(r"internal(?! server error)|Fatal|level=(error|critical)", line, re.IGNORECASE):
                problem(None, f"the service said: {line}")
        self.notes += [line.rstrip() for line in self.queue.notes]
        self.queue.notes.clear()

    def start(self):
        for _ in range(100):
            try:
                return self.queue.start()
            except RuntimeError:  # a command has started one meanwhile
                time.sleep(0.1)
        raise RuntimeError("no service can be started")

    def kill(self):
        """Ends the service; in half of the cases no command starts another before the partials were looked at."""
        self.check_alive()
        calm = self.random.random() < 0.6
        if calm:
            with self.gate:
                while self.busy != 0:
                    self.gate.wait()
                self.busy = -1
        number = 15 if self.random.random() < 0.25 else 9
        figures["stops" if number == 15 else "kills"] += 1
        # An on-demand service that a command had started may still be the one at work.
        alone = self.queue.serving() == self.queue.daemon.pid
        self.queue.kill(number)
        for thing in self.things.values() if not calm or not alone else ():
            thing.expected = None
            thing.note(self.server, f"signal {number}")
        if calm and alone:
            time.sleep(0.03)  # what the service had asked last is read
            sizes = collections.Counter()
            for name in os.listdir(self.out):
                if found := re.search(r"\.(\d+)\.ferry-part", name):
                    sizes[int(found[1])] = max(sizes[int(found[1])], os.stat(f"{self.out}/{name}").st_size)
            for job, thing in list(self.jobs.items()):
                with thing.lock:
                    plain = thing.kind == "clean" and thing.sticky in (None, "digest")
                    thing.expected = sizes.get(job) if plain else None
                    thing.note(self.server, f"signal {number}, {sizes.get(job)} written")
        self.start()
        if calm:
            with self.gate:
                self.busy = 0
                self.gate.notify_all()

    def run(self, seconds):
        try:
            self.start()
            users = [threading.Thread(target=self.user, args=(n,)) for n in range(3)]
            for user in users:
                user.start()
            end = time.monotonic() + seconds
            while time.monotonic() < end:
                time.sleep(self.random.choice([self.random.uniform(0, 0.1), self.random.uniform(0.1, 0.8)]))
                self.kill()
            self.over = True
            for user in users:
                user.join()
            self.check_reasons()
            self.server.faults = False
            for thing in self.things.values():
                with thing.lock:
                    thing.current = thing.checked if thing.number in self.checksums else thing.current
                    thing.expected = None
                    thing.note(self.server, "faults end")
            for verb in ("resume", "retry", "retry"):
                for states in ("paused,waiting", "failed,waiting"):
                    self.queue.command(verb, "-q", "--state", states).communicate()
                if not self.settled(15):
                    break
            self.check()
        finally:
            self.over, self.busy = True, max(0, self.busy)
            self.queue.kill()
            if pid := self.queue.serving():
                os.kill(pid, 15)
            for listener in self.server.listeners:
                listener.shutdown(socket.SHUT_RDWR)  # ends its thread
            shutil.rmtree(self.folder, ignore_errors=True)
            shutil.rmtree(self.out, ignore_errors=True)

    def settled(self, limit):
        """Waits until all has ended; whether something can still be tried."""
        end = time.monotonic() + limit
        while self.queue.list("--state", "queued,running,waiting") and time.monotonic() < end:
            time.sleep(0.1)
        return any(j["reason"] != "exists" for j in self.queue.list("--state", "failed"))

    def check_reasons(self):
        """Whether each failure has a cause in what was answered."""
        for job in self.queue.list("--state", "failed"):
            if (thing := self.jobs.get(job["id"])) is None:
                continue  # told as a problem in the end
            with thing.lock:
                log = " ".join(text for _, text in thing.log)
            fits = {
                "not-found": ": 404" in log or ": page" in log, "server": ": 500" in log or ": 412" in log,
                "checksum": "damaged" in log or thing.number in self.checksums, "gave-up": thing.kind != "clean",
                "exists": self.before.get(job["path"]) == "fail", "changed": thing.kind != "clean",
                "bad-response": thing.kind != "clean"}
            figures["failed " + str(job["reason"])] += 1
            if not fits.get(job["reason"]) or not job["message"]:
                problem(thing, f"failed for {job['reason']}", job)

    def check(self):
        listed = {j["id"]: j for j in self.queue.list("--all")}
        paths = set()
        for number, job in listed.items():
            thing = self.jobs.get(number)
            if thing is None:
                problem(None, f"job {number} was never told: {job}")
                continue
            figures["jobs"] += 1
            figures["state " + job["state"]] += 1
            in_the_way = job["reason"] == "exists" and self.before.get(job["path"]) == "fail"
            if job["state"] == "cancelled" and number in self.cancelled or job["state"] == "failed" and in_the_way:
                continue
            if job["state"] != "completed":
                problem(thing, f"job {number} is {job['state']} in the end", job)
                continue
            self.check_file(thing, job)
            paths.add(job["path"])
        for number, thing in self.jobs.items():
            if number not in listed:
                problem(thing, f"job {number} was told and is lost")
        for path, what in self.before.items():
            if path not in paths:
                with open(path, "rb") as file:
                    if file.read() != OLD:
                        problem(None, f"{path} ({what}) is no longer what was there before")
                paths.add(path)
        for path in sorted({f"{self.out}/{n}" for n in os.listdir(self.out)} - paths):
            found = re.search(r"\.(\d+)\.ferry-part", path)
            problem(found and self.jobs.get(int(found[1])), f"{path} is left over")
        for job, thing in self.jobs.items():
            if thing in suspects:
                print(self.queue.run("show", str(job)), self.queue.run("log", str(job)), "\n".join(
                    line for line in self.notes if f" job={job} " in line), sep="\n", flush=True)
        suspects.clear()
        self.check_alive()
        self.queue.kill(15)
        if self.queue.daemon.returncode != 0:
            problem(None, f"told to stop, the service ended with {self.queue.daemon.returncode}")
        records = lab.Records(self.queue.state)
        for number, job in records.jobs.items():
            if job["state"] == "completed" and records.completions.get(number) != 1:
                problem(self.jobs.get(number), f"job {number}: {records.completions.get(number)} events 'completed'")

    def check_file(self, thing, job):
        try:
            with open(job["path"], "rb") as file:
                data = file.read()
        except OSError as error:
            return problem(thing, f"the file of a completed job: {error}", job)
        figures["files compared"] += 1
        if self.checksums.get(thing.number) not in (None, hashlib.sha256(data).hexdigest()):
            problem(thing, "the file has not the checksum that the user gave", job)
        if job["bytes_total"] not in (None, len(data)):
            problem(thing, f"{len(data)} bytes, bytes_total is {job['bytes_total']}", job)
        if data in thing.versions:
            return job["content_encoding"] is None or problem(thing, "a plain file is told as coded", job)
        if hashlib.sha256(data).digest() in thing.coded:
            figures["coded files"] += 1
            return job["content_encoding"] == "gzip" or problem(thing, "a coded file is told as plain", job)
        if any(thing.versions[v][:end] == data for v, end in thing.cuts):
            figures["cut files"] += 1
            return not job["length_proved"] or problem(thing, "a cut file's length is told as proved", job)
        near = max(thing.versions, key=lambda v: sum(a == b for a, b in zip(v[::997], data[::997])))
        at = next((n for n, (a, b) in enumerate(zip(near, data)) if a != b), min(len(near), len(data)))
        problem(thing, f"WRONG FILE: {len(data)} bytes, no version; differs at {at} from version "
                f"{thing.versions.index(near)} of {len(near)}; head {data[:40]!r}", job)


begun, seed, rounds = time.monotonic(), options.seed, 0
while time.monotonic() - begun < options.minutes * 60 and not 0 < options.rounds <= rounds:
    Round(seed).run(14)
    rounds += 1
    print(f"seed {seed}: {figures['jobs']} jobs, {figures['answers']} answers, {figures['kills']} kills, "
          f"{len(problems)} problems so far", flush=True)
    seed += 1
print(f"{rounds} rounds from seed {options.seed} in {time.monotonic() - begun:.0f} s, {len(problems)} problems")
for name in sorted(n for n in figures if options.verbose or not n.startswith("fault ")):
    print(f"  {name}: {figures[name]}")
sys.exit(1 if problems else 0)
