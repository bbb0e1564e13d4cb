#!/usr/bin/env python3
"""A large form while the service is killed with SIGKILL and the server redirects.

  form-kills.py [--size MIB] [--kills N]

Files of 0 bytes, 1 MiB - 1, 1 MiB + 1 and the size go up as one multipart/form-data body. The server answers the first
whole body with 307; the service is killed while it builds the body and N times while it sends it. The body that
arrives is parsed by Werkzeug and by Django (Python packages), whose digests have to be those of the files. Told: the
service's peak memory. Exit status 1 if anything is wrong.
"""
import argparse, hashlib, os, random, shutil, signal, socket, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
FERRY = os.path.abspath(os.environ.get("FERRY", HERE + "/../../.build/release/ferry"))
MIB = 1 << 20
parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=2048)
parser.add_argument("--kills", type=int, default=3)
options = parser.parse_args()
work = tempfile.mkdtemp(prefix="ferry-form-", dir=os.environ.get("BENCH_DIR", "/var/tmp"))
sizes = [0, MIB - 1, MIB + 1, options.size * MIB]
names = [f"{work}/{number} \"{size}\".bin" for number, size in enumerate(sizes)]
digests = []
for name, size in zip(names, sizes):
    block, hasher = random.Random(size).randbytes(MIB), hashlib.sha256()
    with open(name, "wb") as file:
        for at in range(0, size, MIB):
            piece = (at.to_bytes(8, "little") + block[8:])[:size - at]
            file.write(piece)
            hasher.update(piece)
    digests.append(hasher.hexdigest())


class Server:
    """Takes one POST after the other; the first whole one is redirected, the second one kept."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got, self.type, self.log = 0, None, []
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        stream = client.makefile("rb")
        try:
            while line := stream.readline():
                fields = {}
                while (field := stream.readline()) != b"\r\n":
                    key, value = field.decode().split(":", 1)
                    fields[key.lower()] = value.strip()
                if not line.startswith(b"POST"):
                    client.sendall(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
                    continue
                if "expect" in fields:
                    client.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
                path, left = line.split()[1], int(fields.get("content-length", 0))
                with open(work + "/body", "wb") as file:
                    while left:
                        piece = stream.read1(min(left, MIB))
                        if not piece:
                            self.log.append(f"{path.decode()} cut, {left} missing")
                            return
                        file.write(piece)
                        left -= len(piece)
                        self.got += len(piece)
                self.log.append(f"{path.decode()} whole")
                if path == b"/form":
                    client.sendall(b"HTTP/1.1 307 There\r\nLocation: /there\r\nContent-Length: 0\r\n\r\n")
                else:
                    self.type = fields["content-type"]
                    client.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
        except OSError:
            pass


def ferry(*arguments):
    return subprocess.run([FERRY, "--state-dir", work + "/s", *arguments], capture_output=True, text=True, check=False)


def serve():
    return subprocess.Popen([FERRY + "d", "--state-dir", work + "/s"], stdout=subprocess.DEVNULL,
                            stderr=subprocess.DEVNULL)


def memory():
    with open(f"/proc/{service.pid}/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM")) / 1024


def kill():
    service.send_signal(signal.SIGKILL)
    service.wait()
    return serve()


server, service = Server(), serve()
arguments = [item for name in names for item in ("--form-file", f"files={name}")]
added = ferry("add", "--form", "title=July", *arguments, f"http://127.0.0.1:{server.port}/form")
if added.returncode != 0:
    sys.exit(added.stderr)
job = added.stdout.strip()
spool, peak, begun = work + "/s/spool", 0, time.monotonic()
while not any(os.path.getsize(f"{spool}/{name}") > 0 for name in (os.listdir(spool) if os.path.isdir(spool) else [])):
    time.sleep(0.001)
peak = memory()
service = kill()  # while the body is built
total = sum(sizes)
marks = [(number + 0.5) * total * 2 / options.kills for number in range(options.kills)]
while True:
    state = ferry("list", "--json", "--all").stdout
    if '"state":"completed"' in state or '"state":"failed"' in state or time.monotonic() - begun > 600:
        break
    peak = max(peak, memory())
    if marks and server.got >= marks[0]:
        marks.pop(0)
        service = kill()
    time.sleep(0.01)
peak = max(peak, memory())
service.terminate()
service.wait()
print("\n".join(server.log))
expected = sorted((f"{size}", digest) for size, digest in zip(sizes, digests))
good = server.type is not None
for framework in ("werkzeug", "django") if good else ():
    text = subprocess.run([sys.executable, HERE + "/../FerryTestSupport/parse-form.py", framework, server.type,
                           work + "/body"], capture_output=True, text=True, check=False)
    parts = [line.split("\t") for line in text.stdout.splitlines()]
    found = sorted((part[3], part[4]) for part in parts if part[1] != "-")
    same = found == expected
    good = good and same
    print(f"{framework}: {len(parts)} parts, files {'the same' if same else 'WRONG'} {text.stderr.strip()[-200:]}")
left = os.listdir(spool) if os.path.isdir(spool) else []
print(f"{time.monotonic() - begun:.0f} s, peak {peak:.1f} MiB, spool {'empty' if not left else left}")
shutil.rmtree(work)
sys.exit(0 if good and not left else 1)
