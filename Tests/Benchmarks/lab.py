"""Shared by the trials written in Python: generated content, an origin server, and a queue to work on.

  FERRY      the command under test (default: the release build); ferryd lies beside it
  BENCH_DIR  scratch folder (default: ferry-bench in /dev/shm)
  BENCH_OUT  where downloads are written (default: ferry-bench-out in /var/tmp)
Only processes that a trial started are ended, by their ids.
"""
import json, os, random, shutil, signal, socket, sqlite3, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
FERRY = os.path.abspath(os.environ.get("FERRY", HERE + "/../../.build/release/ferry"))
BENCH_DIR = os.environ.get("BENCH_DIR", "/dev/shm/ferry-bench")
BENCH_OUT = os.environ.get("BENCH_OUT", "/var/tmp/ferry-bench-out")
MIB = 1 << 20
if not os.access(FERRY, os.X_OK):
    sys.exit(f"no {FERRY}; build with: swift build -c release --static-swift-stdlib")


def scratch(parent=None):
    parent = parent or BENCH_DIR
    os.makedirs(parent, exist_ok=True)
    return tempfile.mkdtemp(prefix="t-", dir=parent)  # short: a socket's path has 107 bytes


class Object:
    """A slice of one pool of random bytes: a byte in a wrong place never looks right, and nothing is stored."""
    pool = b""

    @classmethod
    def fill(cls, seed, size):
        source = random.Random(seed)
        cls.pool = b"".join(source.randbytes(min(64 * MIB, size - at)) for at in range(0, size, 64 * MIB))

    def __init__(self, name, size, rate=None, start=None):
        self.name, self.size, self.rate = name, size, rate  # rate in bytes a second
        # No two of a trial's objects begin at the same place, nor at the same place of a block.
        self.start = random.randrange(len(self.pool) - size + 1) if start is None else start
        self.etag = f'"{name}-{self.start}-{size}"'

    def differs(self, path, size=None):
        """Why a file, or its first `size` bytes, is not this object; None if it is."""
        with open(path, "rb") as file:
            length = os.fstat(file.fileno()).st_size
            if size is None:
                size = self.size
                if length != size:
                    return f"{length} bytes in place of {size}"
            elif length < size:
                return f"{length} bytes, {size} were promised"
            for at in range(0, size, MIB):
                end = min(at + MIB, size)
                if file.read(end - at) != self.pool[self.start + at:self.start + end]:
                    return f"differs between {at} and {end} of {self.size}"
        return None


class Request:
    def __init__(self, name, first):
        self.at, self.name, self.first, self.sent = time.monotonic(), name, first, 0

    @property
    def end(self):
        return self.first + self.sent


class Origin:
    """An HTTP/1.1 server with ranges and strong tags on a free port of 127.0.0.1, a thread a connection."""

    def __init__(self):
        self.objects, self.log, self.paced = {}, [], True
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        # Little is under way between the server and the client, so that what was sent says what was got.
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 128 * 1024)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def add(self, item):
        self.objects[item.name] = item
        return self.url(item.name)

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def requests(self, name):
        with self.lock:
            return [r for r in self.log if r.name == name]

    def _accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            lines = connection.makefile("rb")
            while True:
                head = []
                while (line := lines.readline()) != b"\r\n":
                    if not line:
                        return
                    head.append(line.decode("latin-1").rstrip("\r\n"))
                fields = dict((k.lower(), v.strip()) for k, v in (l.split(":", 1) for l in head[1:]))
                self._answer(connection, head[0].split()[1].lstrip("/"), fields)
        except (OSError, ValueError):
            pass
        finally:
            connection.close()

    def _answer(self, connection, name, fields):
        item = self.objects.get(name)
        if item is None:
            connection.sendall(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            return
        first, status = 0, "200 OK"
        if "range" in fields and fields.get("if-range", item.etag) == item.etag:
            first, status = int(fields["range"].split("=")[1].split("-")[0]), "206 Partial Content"
        request = Request(name, first)
        with self.lock:
            self.log.append(request)
        if first > item.size or (first == item.size and status[0:3] == "206"):
            connection.sendall(f"HTTP/1.1 416 Range Not Satisfiable\r\nContent-Range: bytes */{item.size}\r\n"
                               "Content-Length: 0\r\n\r\n".encode())
            return
        head = (f"HTTP/1.1 {status}\r\nContent-Length: {item.size - first}\r\nETag: {item.etag}\r\n"
                "Accept-Ranges: bytes\r\n")
        if status[0:3] == "206":
            head += f"Content-Range: bytes {first}-{item.size - 1}/{item.size}\r\n"
        connection.sendall(head.encode() + b"\r\n")
        self._body(connection, item, request)

    def _body(self, connection, item, request):
        pool, begun = memoryview(item.pool), time.monotonic()
        while request.end < item.size:
            count = min(64 * 1024, item.size - request.end)
            at = item.start + request.end
            connection.sendall(pool[at:at + count])
            request.sent += count
            if item.rate and self.paced:
                ahead = request.sent / item.rate - (time.monotonic() - begun)
                if ahead > 0:
                    time.sleep(ahead)


class Queue:
    """A state folder, the commands that work on it, and the service that serves it."""

    def __init__(self, state, home, variables=None):
        self.state, self.home, self.daemon = state, home, None
        os.makedirs(home, exist_ok=True)
        self.environment = {"HOME": home, "PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "TMPDIR": home}
        for name in ("STATE", "CONFIG", "DATA", "CACHE"):
            self.environment[f"XDG_{name}_HOME"] = f"{home}/{name.lower()}"
        self.environment.update(variables or {})

    def configure(self, text):
        os.makedirs(self.home + "/config/ferry", exist_ok=True)
        with open(self.home + "/config/ferry/config.json5", "w") as file:
            file.write(text)

    def start(self, *before):
        """Starts a daemon and waits until it serves."""
        self.daemon = subprocess.Popen([*before, os.path.dirname(FERRY) + "/ferryd", "--state-dir", self.state],
                                       env=self.environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                       stderr=subprocess.PIPE, text=True, cwd="/")
        said = ""
        for line in self.daemon.stderr:
            said += line
            if "event=ready" in line:
                break
        else:
            raise RuntimeError(f"the service ended with status {self.daemon.wait()}: {said}")
        errors = self.daemon.stderr
        self.notes = []
        threading.Thread(target=lambda notes: notes.extend(errors), args=(self.notes,), daemon=True).start()

    def kill(self, number=signal.SIGKILL):
        if self.daemon is not None:
            if self.daemon.poll() is None:
                self.daemon.send_signal(number)
            self.daemon.wait()

    def command(self, *arguments):
        return subprocess.Popen([FERRY, "--state-dir", self.state, *arguments], env=self.environment, text=True,
                                cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments):
        process = self.command(*arguments)
        out, error = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"ferry {' '.join(arguments)}: status {process.returncode}: {error.strip()}")
        return out

    def list(self, *options):
        return json.loads(self.run("list", "--json", *options))["jobs"]

    def serving(self):
        """The process that serves the queue, by its greeting."""
        link = socket.socket(socket.AF_UNIX)
        link.settimeout(5)
        try:
            link.connect(self.state + "/control.sock")
            return json.loads(link.makefile().readline())["hello"]["pid"]
        except (OSError, ValueError, KeyError):
            return None
        finally:
            link.close()

    def wait_until_idle(self, limit=120):
        end = time.monotonic() + limit
        while True:
            left = self.list("--state", "queued,running,waiting")
            if not left:
                return
            if time.monotonic() > end:
                raise RuntimeError(f"after {limit} s {len(left)} jobs are left, the first is {left[0]}")
            time.sleep(0.05)

    def memory(self, field="VmRSS"):
        """Resident memory of the daemon in MiB."""
        with open(f"/proc/{self.daemon.pid}/status") as file:
            return next(int(l.split()[1]) for l in file if l.startswith(field)) / 1024


class Records:
    """What the database says, read from a copy, so that looking changes nothing."""

    def __init__(self, state):
        folder = tempfile.mkdtemp(prefix="ferry-db-")
        try:
            names = [n for n in os.listdir(state) if ".db" in n or ".sqlite" in n] if os.path.isdir(state) else []
            for name in names:
                if not name.endswith("-shm"):
                    shutil.copy(f"{state}/{name}", folder)
            self.names = names
            main = next((n for n in names if not n.endswith(("-wal", "-shm", "-journal"))), None)
            self.jobs, self.segments, self.completions, self.cancelling, self.sound = {}, [], {}, set(), "ok"
            if main is None:
                return
            try:
                self._read(f"{folder}/{main}")
            except sqlite3.DatabaseError as error:
                self.sound = str(error)
        finally:
            shutil.rmtree(folder)

    def _read(self, path):
        database = sqlite3.connect(path)
        try:
            database.row_factory = sqlite3.Row
            self.sound = database.execute("PRAGMA integrity_check").fetchone()[0]
            if not database.execute("SELECT 1 FROM sqlite_master WHERE name = 'job'").fetchone():
                return
            self.jobs = {r["id"]: dict(r) for r in database.execute("SELECT * FROM job")}
            self.segments = [dict(r) for r in database.execute(
                "SELECT f.*, s.start, s.durable FROM job_file f JOIN segment s USING (job, generation)")]
            self.completions = dict(database.execute(
                "SELECT job, count(*) FROM event WHERE kind = 'completed' GROUP BY job").fetchall())
            # Jobs whose cancelling is committed: the partial may be gone before the job says so.
            self.cancelling = {r["job"] for r in database.execute("SELECT job FROM cleanup WHERE kind = 'cancel'")}
        finally:
            database.close()
