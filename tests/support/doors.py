#!/usr/bin/env python3
"""Tries ways out, one per line of a list, and says what came of each. Runs inside the sandbox; the control runs it outside.

usage: doors.py ATTEMPTS.json     a list of objects {id, door, host, port, mark, ...}; prints one JSON line per attempt:
       {id, got: reached | refused | error, detail}

`reached` means that the answer of the pretended outside was seen. The doors are where ringfence has them: the HTTP proxy
at 127.0.0.1:3128, SOCKS5 at 127.0.0.1:1080, names by the resolver of /etc/resolv.conf, everything else direct.
"""
import json
import os
import socket
import ssl
import sys
import threading
import time

HTTP, SOCKS = ("127.0.0.1", 3128), ("127.0.0.1", 1080)
T = 6


def raw(text):
    """Bytes of a JSON string; \\u00ff stands for the byte ff."""
    return text.encode("latin1") if all(ord(c) < 256 for c in text) else text.encode()


def read_all(s, limit=65536):
    s.settimeout(T)
    out = b""
    try:
        while len(out) < limit:
            d = s.recv(65536)
            if not d:
                break
            out += d
            if b"CANARY" in out:
                break
    except OSError:
        pass
    return out


def read_head(s):
    s.settimeout(T)
    out = b""
    while b"\r\n\r\n" not in out:
        d = s.recv(4096)
        if not d:
            break
        out += d
    return out


def get(s, path, host):
    s.sendall(b"GET /" + raw(path) + b" HTTP/1.1\r\nHost: " + raw(host) + b"\r\nConnection: close\r\n\r\n")
    return verdict(read_all(s))


def verdict(answer):
    if b"CANARY" in answer:
        return "reached", first_line(answer)
    return "refused", first_line(answer) + body_hint(answer)


def first_line(b):
    return b.split(b"\r\n")[0].decode("latin1")[:160]


def body_hint(b):
    head, _, body = b.partition(b"\r\n\r\n")
    heads = [h for h in head.decode("latin1").split("\r\n")[1:] if h.lower().startswith("x-proxy-error")]
    return " | " + " ".join(heads) + " | " + body.decode("latin1", "replace")[:300]


def authority(a):
    if "authority" in a:
        return a["authority"]
    h = a["host"]
    return (f"[{h}]" if ":" in h and not h.startswith("[") else h) + f":{a['port']}"


def connect(a, then):
    """CONNECT, then `then(socket)` in the tunnel."""
    s = socket.create_connection(HTTP, timeout=T)
    au = raw(authority(a))
    s.sendall(b"CONNECT " + au + b" HTTP/1.1\r\nHost: " + au + b"\r\n\r\n")
    head = read_head(s)
    if b" 200" not in head.split(b"\r\n")[0]:
        return verdict(head + read_all(s) if head else b"")
    return then(s)


def hello(s, name):
    """A TLS handshake in which only the server name matters; the pretended server closes after the first bytes."""
    ctx = ssl.create_default_context()
    ctx.check_hostname, ctx.verify_mode = False, ssl.CERT_NONE
    s.settimeout(T)
    t = ctx.wrap_socket(s, server_hostname=name or None)
    return t


def tls_then_get(s, a):
    try:
        t = hello(s, a.get("sni", a["host"]))
    except (ssl.SSLError, OSError) as e:
        return "refused", "tls " + str(e)
    return get(t, a["mark"], a["host"])


def socks(a, command=1):
    s = socket.create_connection(SOCKS, timeout=T)
    s.sendall(b"\5\1\0")
    if s.recv(2) != b"\5\0":
        return None, "no method"
    if a.get("address"):
        h = a["address"]
        fam = socket.AF_INET6 if ":" in h else socket.AF_INET
        dst = (b"\4" if ":" in h else b"\1") + socket.inet_pton(fam, h)
    else:
        h = raw(a["host"])
        dst = b"\3" + bytes([len(h)]) + h
    s.sendall(b"\5" + bytes([command]) + b"\0" + dst + int(a["port"]).to_bytes(2, "big"))
    s.settimeout(T)
    r = s.recv(32)
    if len(r) < 2 or r[1] != 0:
        return None, "reply " + (str(r[1]) if len(r) > 1 else "none")
    return s, ""


def dns_query(name, kind, server, tcp=False):
    q = os.urandom(2) + b"\1\0\0\1\0\0\0\0\0\0"
    for label in raw(name).split(b"."):
        q += bytes([len(label)]) + label
    q += b"\0" + kind.to_bytes(2, "big") + b"\0\1"
    if tcp:
        s = socket.create_connection((server, 53), timeout=T)
        s.sendall(len(q).to_bytes(2, "big") + q)
        r = s.recv(4096)[2:]
    else:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(T)
        s.sendto(q, (server, 53))
        r = s.recv(4096)
    return r[3] & 15, int.from_bytes(r[6:8], "big"), r


def resolver():
    for line in open("/etc/resolv.conf"):
        if line.startswith("nameserver"):
            return line.split()[1]
    return "127.0.0.53"


def direct(a):
    s = None
    for fam, kind, proto, _, ad in socket.getaddrinfo(a.get("address", a["host"]), a["port"], type=socket.SOCK_STREAM):
        try:
            s = socket.socket(fam, kind, proto)
            s.settimeout(T)
            s.connect(ad)
            break
        except OSError as e:
            last, s = e, None
    if s is None:
        raise last
    if a.get("tls"):
        return tls_then_get(s, a)
    return get(s, a["mark"], a.get("hosthdr", a["host"]))


def attempt(a):
    door = a["door"]
    if door == "connect":
        return connect(a, lambda s: get(s, a["mark"], a.get("hosthdr", a["host"])))
    if door == "connect-tls":
        return connect(a, lambda s: tls_then_get(s, a))
    if door == "connect-raw":  # bytes in the tunnel
        def send(s):
            s.sendall(raw(a["bytes"]))
            return verdict(read_all(s))
        return connect(a, send)
    if door == "http":
        s = socket.create_connection(HTTP, timeout=T)
        au = a["authority"] if "authority" in a else authority(a)
        s.sendall(b"GET " + raw(a.get("scheme", "http")) + b"://" + raw(au) + b"/" + raw(a["mark"] + a.get("query", "")) + b" HTTP/1.1\r\nHost: " + raw(a.get("hosthdr", au)) + b"\r\n" + raw(a.get("headers", "")) + b"\r\n")
        return verdict(read_all(s))
    if door == "proxy-raw":  # bytes straight to the HTTP proxy
        s = socket.create_connection(HTTP, timeout=T)
        s.sendall(raw(a["bytes"]))
        return verdict(read_all(s))
    if door == "keepalive":  # two requests on one connection; the answer to the second is what counts
        s = socket.create_connection(HTTP, timeout=T)
        one = lambda h, p: b"GET http://" + raw(h) + b"/" + raw(p) + b" HTTP/1.1\r\nHost: " + raw(h) + b"\r\n\r\n"
        s.sendall(one(a["first"], "first"))
        got = b""
        while b"CANARY-first" not in got:
            d = s.recv(4096)
            if not d:
                return "error", "first request failed: " + first_line(got)
            got += d
        s.sendall(one(a["host"], a["mark"]))
        return verdict(read_all(s))
    if door == "socks":
        s, why = socks(a)
        return ("refused", why) if s is None else get(s, a["mark"], a.get("hosthdr", a["host"]))
    if door == "socks-tls":
        s, why = socks(a)
        return ("refused", why) if s is None else tls_then_get(s, a)
    if door in ("socks-bind", "socks-udp"):
        s, why = socks(a, 2 if door == "socks-bind" else 3)
        return ("refused", why) if s is None else ("reached", "granted")
    if door == "socks4":
        s = socket.create_connection(SOCKS, timeout=T)
        s.sendall(b"\4\1" + int(a["port"]).to_bytes(2, "big") + b"\0\0\0\1u\0" + raw(a["host"]) + b"\0")
        s.settimeout(T)
        r = s.recv(8)
        if len(r) < 2 or r[1] != 90:
            return "refused", repr(r)
        return get(s, a["mark"], a["host"])
    if door == "direct":
        return direct(a)
    if door == "dns":
        rc, n, r = dns_query(a["host"], a.get("type", 1), a.get("server") or resolver(), a.get("tcp", False))
        return ("reached" if n else "refused"), f"rcode {rc} answers {n}"
    if door == "udp":
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.settimeout(3)
        t = time.time()
        try:
            s.connect((a["address"], a["port"]))
            s.send(raw(a["mark"]))
            d = s.recv(100)
            return ("reached" if b"CANARY" in d else "refused"), repr(d)
        except OSError as e:
            return "refused", f"{e.__class__.__name__} {e.errno} after {time.time() - t:.1f}s"
    if door == "relay":  # a relay inside asks on behalf of the client
        l = socket.create_server(("127.0.0.1", 0))

        def serve():
            c, _ = l.accept()
            up = socket.create_connection(HTTP, timeout=T)
            up.sendall(c.recv(4096))
            c.sendall(read_all(up))
            c.close()
        threading.Thread(target=serve, daemon=True).start()
        s = socket.create_connection(l.getsockname(), timeout=T)
        au = raw(authority(a))
        s.sendall(b"GET http://" + au + b"/" + raw(a["mark"]) + b" HTTP/1.1\r\nHost: " + au + b"\r\n\r\n")
        return verdict(read_all(s))
    if door == "drip":  # many half-open requests, then an ordinary one must still be served
        held = []
        for i in range(a.get("count", 200)):
            try:
                s = socket.create_connection(HTTP if i % 2 else SOCKS, timeout=2)
                s.sendall(b"CONNECT a" if i % 2 else b"\5")
                held.append(s)
            except OSError:
                break
        t = time.time()
        r = connect(a, lambda s: get(s, a["mark"], a["host"]))
        return r[0], f"{r[1]} beside {len(held)} half-open ones, {time.time() - t:.2f}s"
    if door == "env":
        v = os.environ.get(a["name"], "")
        return ("reached" if v else "refused"), v
    raise ValueError("no such door: " + door)


for a in json.load(open(sys.argv[1])):
    try:
        got, detail = attempt(a)
    except (OSError, ssl.SSLError, UnicodeError) as e:
        got, detail = "refused", f"{e.__class__.__name__} {e}"
    except Exception as e:  # a fault of this script must not look like a refusal
        got, detail = "error", repr(e)
    print(json.dumps({"id": a["id"], "got": got, "detail": detail}), flush=True)
