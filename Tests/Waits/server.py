#!/usr/bin/env python3
"""A server for the labs: files made of their offsets, and what can go wrong on the way to them.

  server.py ADDRESS PORT FOLDER      HTTP; FOLDER/log gets a line a request, FOLDER/ports the client's port for each;
                                     FOLDER/portal makes it a login page
  server.py dns ADDRESS ANSWER       a name server that answers every question with one address

  /SIZE/NAME    a file of SIZE MiB with a strong tag; ranges are honoured
    ?rate=N       N KiB a second
    ?chunked      the whole is sent without its length
    ?reset=N      the first answer ends with RST after N KiB
    ?silent=N     the first answer says nothing more after N KiB
    ?pause=N      the first answer is 503 with a Retry-After of N seconds
"""
import hashlib, os, socket, struct, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlparse

BLOCK = 1 << 16


def block(number):
    """The bytes of a block: its number's digest, over and over."""
    return hashlib.sha256(struct.pack(">Q", number)).digest() * (BLOCK // 32)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 600

    def do_GET(self):
        url, query = urlparse(self.path), None
        query = parse_qs(url.query, keep_blank_values=True)
        if os.path.exists(folder + "/portal"):
            return self.login(url.path)
        size = int(url.path.split("/")[1]) << 20
        start = self.headers.get("Range", "bytes=0-")[6:].split("-")[0]
        start = int(start)
        self.note("%s %d" % (url.path, start))
        first = self.is_first(url.path)
        if "pause" in query and first:
            return self.whole(503, [("Retry-After", query["pause"][0])], b"")
        if start >= size:
            return self.whole(416, [("Content-Range", "bytes */%d" % size)], b"")
        fields = [("ETag", '"%s"' % url.path), ("Accept-Ranges", "bytes"), ("Content-Type", "application/x-test")]
        chunked = "chunked" in query and start == 0
        if start > 0:
            fields.append(("Content-Range", "bytes %d-%d/%d" % (start, size - 1, size)))
        fields.append(("Transfer-Encoding", "chunked") if chunked else ("Content-Length", str(size - start)))
        self.send_response(206 if start > 0 else 200)
        for name, value in fields:
            self.send_header(name, value)
        self.end_headers()
        rate = int(query["rate"][0]) << 10 if "rate" in query else None
        reset = int(query["reset"][0]) << 10 if "reset" in query and first else None
        silent = int(query["silent"][0]) << 10 if "silent" in query and first else None
        sent, begun, offset = 0, time.monotonic(), start
        step = min(BLOCK, max(1024, rate // 20)) if rate else BLOCK
        while offset < size:
            number, inner = divmod(offset, BLOCK)
            piece = block(number)[inner : inner + min(step, size - offset)]
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece) if chunked else piece)
            offset, sent = offset + len(piece), sent + len(piece)
            if reset is not None and sent >= reset:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
                raise ConnectionResetError
            if silent is not None and sent >= silent:
                time.sleep(600)
            if rate:
                time.sleep(max(0, begun + sent / rate - time.monotonic()))
        if chunked:
            self.wfile.write(b"0\r\n\r\n")

    def login(self, path):
        self.note("portal " + path)
        if path != "/login":
            return self.whole(302, [("Location", "/login")], b"")
        self.whole(200, [("Content-Type", "text/html")], b"<html><body>Please log in</body></html>")

    def whole(self, status, fields, body):
        self.send_response(status)
        for name, value in fields + [("Content-Length", str(len(body)))]:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def is_first(self, path):
        with lock:
            first = path not in seen
            seen.add(path)
        return first

    def note(self, line):
        with lock, open(folder + "/log", "a") as log:
            log.write(line + "\n")
            with open(folder + "/ports", "a") as ports:
                ports.write("%s %d\n" % (line.split()[0], self.client_address[1]))

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64

    def handle_error(self, *_):
        pass  # a client that goes is no news


def answer_names(address, answer):
    """Answers A with the address, and everything else with nothing (RFC 1035 §4.1)."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, 53))
    while True:
        query, client = server.recvfrom(512)
        end = query.index(b"\0", 12) + 5
        question = query[12:end]
        found = question[-4:-2] == b"\0\1"
        head = query[:2] + b"\x85\x80" + struct.pack(">HHHH", 1, 1 if found else 0, 0, 0)
        record = b"\xc0\x0c" + struct.pack(">HHIH", 1, 1, 1, 4) + socket.inet_aton(answer)
        try:
            server.sendto(head + question + (record if found else b""), client)
        except OSError:
            pass  # there is no way back to the client now


lock, seen = threading.Lock(), set()
if sys.argv[1] == "dns":
    answer_names(sys.argv[2], sys.argv[3])
elif sys.argv[1] == "sum":
    digest = hashlib.sha256()
    for number in range((int(sys.argv[2]) << 20) // BLOCK):
        digest.update(block(number))
    print(digest.hexdigest())
else:
    folder = sys.argv[3]
    Server((sys.argv[1], int(sys.argv[2])), Handler).serve_forever()
