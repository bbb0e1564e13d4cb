#!/usr/bin/env python3
"""PUT of one large file, warm, to a server that drops it: `ferry put` against `curl -T`, over http and https.

  put-speed.py [--size MIB] [--rounds N] [--cold] [--only http|https]

The server is a process of its own that takes bodies without looking at them. Each round runs both once, in a shuffled
order. Told: medians of wall time, the median of the ratios curl / ferry (above 1: faster than curl), the processor
time of both sides of the client, and the service's peak memory. With --cold the page cache lets go of the file
before each run.
"""
import argparse, os, random, shutil, socket, ssl, statistics, subprocess, sys, tempfile, threading, time

HERE = os.path.dirname(os.path.abspath(__file__))
FERRY = os.path.abspath(os.environ.get("FERRY", HERE + "/../../.build/release/ferry"))
MIB = 1 << 20


def answer(connection, context):
    """Serves one connection."""
    room = bytearray(MIB)
    try:
        if context:
            connection = context.wrap_socket(connection, server_side=True)
        head = b""
        while True:
            while b"\r\n\r\n" not in head:
                piece = connection.recv(65536)
                if not piece:
                    return
                head += piece
            lines, rest = head.split(b"\r\n\r\n", 1)
            fields = {k.lower(): v.strip() for k, v in (l.split(b":", 1) for l in lines.split(b"\r\n")[1:])}
            if b"expect" in fields:
                connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            left = int(fields.get(b"content-length", 0)) - len(rest)
            while left > 0:
                # MSG_TRUNC: the kernel drops the bytes in place of copying them (tcp(7)).
                got = (connection.recv_into(room, min(left, MIB)) if context
                       else connection.recv_into(room, min(left, MIB), socket.MSG_TRUNC))
                if not got:
                    return
                left -= got
            head = b""
            connection.sendall(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")
    except OSError:
        pass
    finally:
        connection.close()


def serve(certificate):
    """The sink: prints its two ports and runs until its input ends."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)

    def accept(listener, secure):
        while True:
            client, _ = listener.accept()
            threading.Thread(target=answer, args=(client, secure), daemon=True).start()

    listeners = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
    for listener, secure in zip(listeners, (None, context)):
        threading.Thread(target=accept, args=(listener, secure), daemon=True).start()
    print(*(listener.getsockname()[1] for listener in listeners), flush=True)
    sys.stdin.read()


if len(sys.argv) == 3 and sys.argv[1] == "sink":
    serve(sys.argv[2])
    sys.exit()

parser = argparse.ArgumentParser()
parser.add_argument("--size", type=int, default=4096)
parser.add_argument("--rounds", type=int, default=7)
parser.add_argument("--cold", action="store_true")
parser.add_argument("--only", choices=["http", "https"])
options = parser.parse_args()
work = tempfile.mkdtemp(prefix="ferry-put-", dir=os.environ.get("BENCH_DIR", "/var/tmp"))
source, pair = work + "/source.bin", work + "/pair.pem"
with open(source, "wb") as file:
    block = os.urandom(MIB)
    for _ in range(options.size):
        file.write(block)
    os.fsync(file.fileno())
subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                "-days", "30", "-subj", "/CN=localhost", "-addext",
                "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout",
                work + "/key", "-out", work + "/certificate"], check=True, capture_output=True)
with open(pair, "w") as file:
    file.write(open(work + "/key").read() + open(work + "/certificate").read())
sink = subprocess.Popen([sys.executable, __file__, "sink", pair], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                        text=True)
ports = sink.stdout.readline().split()
service = subprocess.Popen([FERRY + "d", "--state-dir", work + "/s"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                           text=True)
for line in service.stderr:
    if "event=ready" in line:
        break
threading.Thread(target=service.stderr.read, daemon=True).start()


def processor(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def run(command):
    if options.cold:
        descriptor = os.open(source, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    before, begun = processor(service.pid), time.monotonic()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    wall = time.monotonic() - begun
    if status:
        sys.exit(f"failed with status {os.waitstatus_to_exitcode(status)}: {' '.join(command)}")
    return wall, usage.ru_utime + usage.ru_stime + processor(service.pid) - before


for scheme, port in zip(("http", "https"), ports):
    if options.only not in (None, scheme):
        continue
    url = f"{scheme}://127.0.0.1:{port}/"
    trust = ["--cacert", work + "/certificate"]
    commands = {
        "curl -T": lambda n: ["curl", "-sS", *trust, "-T", source, f"{url}c{n}"],
        "ferry put": lambda n: [FERRY, "put", "-q", *trust, "--protocol", "put", "--state-dir", work + "/s", source,
                                f"{url}f{n}"],
    }
    runs = {name: [] for name in commands}
    for number in range(options.rounds):
        for name in random.sample(list(commands), 2):
            runs[name].append(run(commands[name](number)))
    ratio = statistics.median(c[0] / f[0] for c, f in zip(runs["curl -T"], runs["ferry put"]))
    for name, values in runs.items():
        wall, time_used = (statistics.median(value[i] for value in values) for i in range(2))
        print(f"{scheme:6} {name:10} {wall:7.3f} s {options.size / wall:7.0f} MiB/s {time_used:7.3f} s CPU")
    print(f"{scheme:6} ferry put is {ratio:.2f} times as fast ({options.rounds} rounds)", flush=True)
with open(f"/proc/{service.pid}/status") as file:
    print("service", *(line.strip() for line in file if line.startswith(("VmHWM", "RssAnon"))))
service.terminate()
service.wait()
sink.stdin.close()
sink.wait()
shutil.rmtree(work)
