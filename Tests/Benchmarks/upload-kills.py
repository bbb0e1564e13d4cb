#!/usr/bin/env python3
"""One large upload while the service is killed with SIGKILL again and again.

  upload-kills.py [--size MIB] [--kills N] [--protocol P] [--rate MIB_PER_S] --server NAME
  upload-kills.py [...] --store DIR URL

NAME is one of upload_servers.py. Any other server may be asked: URL is where the upload goes, DIR the folder in which
it keeps what it got. A proxy in front of it counts the body bytes and sets the pace, so that the kills fall into the
upload. Checked at the end: the job is completed, the newest file below DIR has the source's SHA-256. Told: the bytes
that went up beyond the size, and the service's peak memory. Exit status 1 if the upload is broken.
"""
import argparse, hashlib, json, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time
import urllib.parse
import upload_servers

HERE = os.path.dirname(os.path.abspath(__file__))
FERRY = os.path.abspath(os.environ.get("FERRY", HERE + "/../../.build/release/ferry"))
MIB = 1 << 20
parser = argparse.ArgumentParser()
parser.add_argument("url", nargs="?")
parser.add_argument("--server", choices=upload_servers.NAMES)
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--kills", type=int, default=20)
parser.add_argument("--protocol", default="auto")
parser.add_argument("--store")
parser.add_argument("--rate", type=int, default=0, help="0: as fast as the server takes it, and kills by bytes")
parser.add_argument("--seed", type=int, default=1)
options = parser.parse_args()
chance = random.Random(options.seed)
work = tempfile.mkdtemp(prefix="ferry-up-", dir=os.environ.get("BENCH_DIR", "/var/tmp"))
server = upload_servers.Server(options.server, work) if options.server else None
if server:
    options.url, options.store = server.url, server.store
elif not options.url or not options.store:
    parser.error("a --server is needed, or a URL with --store")
target = urllib.parse.urlsplit(options.url)


class Proxy:
    """Passes connections on, byte for byte, and counts what goes up."""

    def __init__(self, port):
        self.up, self.lock = 0, threading.Lock()
        self.to, self.listener = port, socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.to))
            threading.Thread(target=self.pump, args=(client, server, True), daemon=True).start()
            threading.Thread(target=self.pump, args=(server, client, False), daemon=True).start()

    def pump(self, source, sink, up):
        try:
            while data := source.recv(256 * 1024):
                sink.sendall(data)
                if up:
                    with self.lock:
                        self.up += len(data)
                    if options.rate:
                        time.sleep(len(data) / options.rate / MIB)
        except OSError:
            pass
        for end in (source, sink):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def digest(path):
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


source, state = work + "/source.bin", work + "/s"
block = random.Random(options.seed).randbytes(MIB)
with open(source, "wb") as file:
    for number in range(options.size):
        file.write(number.to_bytes(8, "little") + block[8:])
size = options.size * MIB
proxy = Proxy(target.port or 80)
path = target.path + ("?" + target.query if target.query else "")
url = f"http://127.0.0.1:{proxy.port}{path}"


def ferry(*arguments):
    return subprocess.run([FERRY, "--state-dir", state, *arguments], capture_output=True, text=True, check=False)


def memory(process):
    """Peak resident memory in MiB."""
    try:
        with open(f"/proc/{process.pid}/status") as file:
            return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024
    except (OSError, StopIteration):
        return 0


def serve():
    return subprocess.Popen([FERRY + "d", "--state-dir", state], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


begun, started = time.monotonic(), time.time()
service = serve()
added = ferry("add", "--protocol", options.protocol, "--upload", source, url)
if added.returncode != 0:
    sys.exit(added.stderr)
kills, peak = 0, 0
while True:
    shown = ferry("show", "--json", added.stdout.strip())
    if shown.returncode != 0:
        if service.poll() is not None:
            sys.exit(f"the service ended: {shown.stderr}")
        continue  # it has just been started
    job = json.loads(shown.stdout)
    if job["state"] in ("completed", "failed", "cancelled"):
        break
    peak = max(peak, memory(service))
    mark = (kills + chance.random()) * size / options.kills
    if kills < options.kills and job["state"] == "running" and (proxy.up >= mark):
        peak = max(peak, memory(service))
        service.send_signal(signal.SIGKILL)
        service.wait()
        kills += 1
        service = serve()
    time.sleep(0.02)
seconds = time.monotonic() - begun
peak = max(peak, memory(service))
service.terminate()
service.wait()


def stored():
    files = [os.path.join(folder, name) for folder, _, names in os.walk(options.store) for name in names]
    files = [name for name in files if os.path.getsize(name) == size and os.path.getmtime(name) > started]
    return max(files, key=os.path.getmtime) if files else None


for _ in range(50):  # some servers move a whole file into its place
    newest = stored()
    if newest:
        break
    time.sleep(0.2)
is_same = newest is not None and digest(newest) == digest(source)
print(
    f"{job['state']} by {job['protocol']}: {options.size} MiB, {kills} kills, {seconds:.0f} s, "
    f"{(proxy.up - size) / MIB:.1f} MiB more than its size went up, peak {peak:.1f} MiB, "
    f"content {'the same' if is_same else 'WRONG'}"
    + (f", {job['message']}" if job["message"] else "")
)
if server:
    server.stop()
shutil.rmtree(work)
sys.exit(0 if is_same and job["state"] == "completed" else 1)
