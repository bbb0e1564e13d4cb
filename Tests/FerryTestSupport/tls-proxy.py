"""Terminates TLS for the scripted server: tls-proxy.py CERTIFICATE KEY UPSTREAM_PORT

Listens on a port of 127.0.0.1 that the kernel chooses, prints it, and ends when its standard input does.
An upstream that closes ends the TLS session with close_notify, without it if it sent an urgent byte; one that
resets has the client's connection reset.
"""

import array
import fcntl
import os
import select
import socket
import ssl
import struct
import sys
import termios
import threading
import time


def was_urgent(upstream):
    try:
        return bool(upstream.recv(1, socket.MSG_OOB))
    except OSError:  # EINVAL: no urgent byte came
        return False


def reset(tls):
    unsent = array.array("i", [1])
    while fcntl.ioctl(tls, termios.TIOCOUTQ, unsent) == 0 and unsent[0] > 0:
        time.sleep(0.001)  # a reset would throw away what has not been sent yet
    tls.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def forward(client, context, upstream_port):
    upstream = socket.create_connection(("127.0.0.1", upstream_port))
    upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = client
    rude = False
    try:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        tls = context.wrap_socket(client, server_side=True)
        while True:
            readable = [tls] if tls.pending() else select.select([tls, upstream], [], [])[0]
            if tls in readable:
                data = tls.recv(65536)
                if not data:
                    return
                upstream.sendall(data)
            if upstream in readable:
                rude = rude or was_urgent(upstream)  # reading past the urgent byte forgets it
                try:
                    data = upstream.recv(65536)
                except ConnectionResetError:
                    reset(tls)
                    return
                if not data and rude:
                    return
                if not data:
                    tls.settimeout(2)
                    tls.unwrap()
                    return
                tls.sendall(data)
    except OSError:
        return
    finally:
        tls.close()
        upstream.close()


def end_with_parent():
    sys.stdin.read()
    os._exit(0)


def main():
    certificate, key, upstream_port = sys.argv[1:]
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)
    threading.Thread(target=end_with_parent, daemon=True).start()
    while True:
        client, _ = listener.accept()
        threading.Thread(target=forward, args=(client, context, int(upstream_port)), daemon=True).start()


main()
