#!/usr/bin/env python3
"""proxy.py FOLDER: a web proxy on a port of this machine, for apt and cargo, whose network can be made to fail.

FOLDER/port gets its port. FOLDER/limit, read again and again, holds the bytes that go through in all before every
connection breaks (none: no limit). FOLDER/missing holds a pattern of addresses that are answered with 404. FOLDER/log gets
a line for each address that went through whole, FOLDER/bytes the bytes that went through so far.
"""

import http.server
import os
import re
import select
import socket
import socketserver
import sys
import threading
import urllib.parse

FOLDER = sys.argv[1]
LOCK = threading.Lock()
passed = 0


def told(name):
    """What the folder's file of that name says."""
    try:
        with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
            return file.read().strip()
    except FileNotFoundError:
        return ""


def write(name, mode, text):
    with open(os.path.join(FOLDER, name), mode, encoding="utf-8") as file:
        file.write(text)


class Broken(Exception):
    """The network has failed."""


def count(size):
    """Adds to the bytes that went through. Raises Broken beyond the limit."""
    global passed
    with LOCK:
        passed += size
        write("bytes", "w", f"{passed}\n")
        if passed > int(told("limit") or 1 << 60):
            raise Broken


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        """A request of plain HTTP, which is how apt asks: what it asks for is signed."""
        self.close_connection = True
        address = urllib.parse.urlsplit(self.path)
        missing = told("missing")
        if missing and re.search(missing, self.path):
            self.send_error(404)
            return
        try:
            count(0)
            with socket.create_connection((address.hostname, address.port or 80), 30) as server:
                kept = [f"{name}: {value}" for name, value in self.headers.items() if not re.match("(proxy-)?connection", name, re.I)]
                target = address.path + (f"?{address.query}" if address.query else "")
                head = [f"{self.command} {target} HTTP/1.1", *kept, "Connection: close", "", ""]
                server.sendall("\r\n".join(head).encode())
                while data := server.recv(1 << 16):
                    count(len(data))
                    self.connection.sendall(data)
            with LOCK:
                write("log", "a", f"{self.path}\n")
        except (Broken, OSError):
            pass

    do_HEAD = do_GET

    def do_CONNECT(self):
        """A tunnel, for HTTPS."""
        self.close_connection = True
        host, port = self.path.rsplit(":", 1)
        try:
            count(0)
            with socket.create_connection((host, int(port)), 30) as server:
                self.send_response(200, "Connected")
                self.end_headers()
                ends = {server: self.connection, self.connection: server}
                while ready := select.select([*ends], [], [], 120)[0]:
                    for end in ready:
                        data = end.recv(1 << 16)
                        if not data:
                            return
                        count(len(data))
                        ends[end].sendall(data)
        except (Broken, OSError):
            pass

    def log_message(self, *_):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 64


server = Server(("127.0.0.1", 0), Proxy)
write("port.new", "w", f"{server.server_address[1]}\n")
os.rename(os.path.join(FOLDER, "port.new"), os.path.join(FOLDER, "port"))
server.serve_forever()
