"""Terminates TLS for the scripted server: tls-proxy.py CERTIFICATE KEY UPSTREAM_PORT

Listens on a port of 127.0.0.1 that the kernel chooses, prints it, and ends when its standard input does.
An upstream that closes ends the TLS session with close_notify; one that resets ends it without.
"""

import os
import select
import socket
import ssl
import sys
import threading


def forward(client, context, upstream_port):
    upstream = socket.create_connection(("127.0.0.1", upstream_port))
    upstream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    tls = client
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
                try:
                    data = upstream.recv(65536)
                except ConnectionResetError:
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
