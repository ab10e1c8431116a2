#!/usr/bin/env python3
"""The pretended outside of the tests, and the services of the pretended host.

usage: world.py outside LOG [GITROOT]   in a network namespace with the addresses of OUTSIDE below
       world.py host LOG                in the namespace from which the launcher runs

Both print `up`, wait for a line on standard input (by then the addresses are there), and print `ready`. Whatever
arrives anywhere becomes one line of LOG, so that a test can show that nothing arrived. Nothing here is careful about
who asks: the open proxies of `host` are what a proxy without rules does.
"""
import os
import select
import socket
import ssl
import subprocess
import sys
import threading
import time

OUT4, OUT4_TLS, OUT4_GIT, META, DNS, OUT6 = "10.9.9.9", "10.9.9.10", "10.9.9.11", "169.254.169.254", "10.9.9.53", "fd00:9::9"

mode, log_path = sys.argv[1:3]
log_lock = threading.Lock()


def log(line):
    line = "".join(c if c.isprintable() else "." for c in line)
    with log_lock, open(log_path, "a") as f:
        f.write(line + "\n")


def listen(family, address, serve, kind=socket.SOCK_STREAM):
    s = socket.socket(family, kind)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.bind(address)
    if kind == socket.SOCK_DGRAM:
        threading.Thread(target=serve, args=(s,), daemon=True).start()
        return
    s.listen(128)

    def one(c):
        try:
            c.settimeout(20)
            serve(c)
        except OSError:
            pass
        finally:
            c.close()

    def loop():
        while True:
            c, _ = s.accept()
            threading.Thread(target=one, args=(c,), daemon=True).start()

    threading.Thread(target=loop, daemon=True).start()


def http(tag):
    """Answers each request with CANARY-path; /redir/x redirects to denied.test; /big/N sends N bytes."""

    def serve(c):
        buf = b""
        while True:
            while b"\r\n\r\n" not in buf:
                d = c.recv(65536)
                if not d:
                    if buf:
                        log(f"{tag} raw {buf[:300]!r}")
                    return
                buf += d
            head, buf = buf.split(b"\r\n\r\n", 1)
            lines = head.decode("latin1").split("\r\n")
            host = [x[5:].strip() for x in lines if x.lower().startswith("host:")]
            length = [int(x[15:]) for x in lines if x.lower().startswith("content-length:")]
            while length and len(buf) < length[0]:
                d = c.recv(65536)
                if not d:
                    return
                buf += d
            if length:
                buf = buf[length[0]:]
            extra = [x for x in lines[1:] if x.split(":")[0].lower() in ("authorization", "proxy-authorization", "via", "forwarded", "x-forwarded-for", "proxy-connection")]
            words = lines[0].split(" ")
            target = words[1] if len(words) > 1 else lines[0]
            log(f"{tag} {lines[0]} host={','.join(host)} {extra if extra else ''}")
            if target.startswith("/redir/"):
                c.sendall(b"HTTP/1.1 302 Found\r\nLocation: http://denied.test/" + target[7:].encode() + b"\r\nContent-Length: 0\r\n\r\n")
            elif target.startswith("/big/"):
                n = int(target[5:].split("?")[0])
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % n)
                while n > 0:
                    c.sendall(b"x" * min(n, 1 << 16))
                    n -= 1 << 16
            else:
                body = ("CANARY-" + target.strip("/")).encode()
                c.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    return serve


def first_bytes(tag):
    """Logs the first bytes that arrive, readable parts only (a ClientHello shows its server name), and closes."""

    def serve(c):
        d = c.recv(4096)
        log(f"{tag} " + "".join(chr(x) if 32 < x < 127 else "." for x in d))

    return serve


def banner(tag):
    """A server that speaks first, as SSH and SMTP do."""

    def serve(c):
        c.sendall(b"220 CANARY ready\r\n")
        log(f"{tag} " + repr(c.recv(4096)))

    return serve


def udp(tag):
    def serve(s):
        while True:
            d, a = s.recvfrom(2048)
            log(f"{tag} {d!r}")
            s.sendto(b"CANARY", a)

    return serve


# --- names ------------------------------------------------------------------------------------------------------------

flips = {}


def answers(name, kind):
    """What a name resolves to. The first label says it: `a-10-9-9-9` one address, `a-10-9-9-9--127-0-0-1` two,
    `flip-X--Y` X to the first question and Y to all later ones, `h-<32 hex digits>` an IPv6 address."""
    first = name.split(".")[0].lower()
    v4 = lambda t: bytes(int(x) for x in t.split("-"))
    if first.startswith("a-"):
        return [v4(t) for t in first[2:].split("--")] if kind == 1 else []
    if first.startswith("flip-"):
        if kind != 1:
            return []
        n = flips.get(name, 0)
        flips[name] = n + 1
        both = first[5:].split("--")
        return [v4(both[0] if n == 0 else both[1])]
    if first.startswith("h-"):
        return [bytes.fromhex(first[2:])] if kind == 28 else []
    if kind == 28:
        return [socket.inet_pton(socket.AF_INET6, OUT6)] if first == "six" else []
    if kind != 1 or first == "six":
        return []
    if first == "rebind":
        return [v4("127-0-0-1")]
    if first == "meta":
        return [v4("169-254-169-254")]
    if first == "tlsgit":
        return [v4(OUT4_GIT.replace(".", "-"))]
    if first.startswith("tls"):
        return [v4(OUT4_TLS.replace(".", "-"))]
    return [v4(OUT4.replace(".", "-"))]


def dns_reply(q):
    i, labels = 12, []
    while q[i]:
        labels.append(q[i + 1:i + 1 + q[i]].decode("latin1"))
        i += q[i] + 1
    kind, name = int.from_bytes(q[i + 1:i + 3], "big"), ".".join(labels)
    log(f"dns {kind} {name}")
    known = name.lower().endswith(".test")
    found = answers(name, kind) if known else []
    out = b"".join(b"\xc0\x0c" + kind.to_bytes(2, "big") + b"\0\1\0\0\0\0" + len(a).to_bytes(2, "big") + a for a in found)
    return q[:2] + (b"\x81\x80" if known else b"\x81\x83") + b"\0\1" + len(found).to_bytes(2, "big") + b"\0\0\0\0" + q[12:i + 5] + out


def dns_udp(s):
    while True:
        q, a = s.recvfrom(2048)
        try:
            s.sendto(dns_reply(q), a)
        except Exception as e:
            log(f"dnserr {e!r}")


def dns_tcp(c):
    n = int.from_bytes(c.recv(2), "big")
    r = dns_reply(c.recv(n))
    c.sendall(len(r).to_bytes(2, "big") + r)


# --- TLS and git ------------------------------------------------------------------------------------------------------

def tls_server(folder, inner):
    """A TLS server with a certificate of its own for *.test, in front of another server."""
    key, cert = folder + "/key.pem", folder + "/cert.pem"
    if not os.path.exists(cert):
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test",
                        "-addext", "subjectAltName=DNS:tlsgit.test,DNS:*.good.test", "-keyout", key, "-out", cert], check=True, capture_output=True)
        os.chmod(cert, 0o644)
    ctx = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    ctx.load_cert_chain(cert, key)

    def named(sock, name, _ctx):
        log(f"tlsname {name}")

    ctx.sni_callback = named
    def serve(c):
        inner(ctx.wrap_socket(c, server_side=True))

    return serve


def git_http(root):
    """Smart HTTP by git's own CGI program; every repository below root may be fetched and pushed to."""
    backend = subprocess.run(["git", "--exec-path"], capture_output=True, text=True).stdout.strip() + "/git-http-backend"

    def serve(c):
        f = c.makefile("rb")
        while True:
            line = f.readline().decode("latin1").split()
            if len(line) < 2:
                return
            method, target = line[0], line[1]
            heads = {}
            while True:
                h = f.readline().decode("latin1").strip()
                if not h:
                    break
                k, v = h.split(":", 1)
                heads[k.lower()] = v.strip()
            if heads.get("expect", "").lower() == "100-continue":
                c.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
            body = b""
            if "chunked" in heads.get("transfer-encoding", ""):
                while True:
                    n = int(f.readline(), 16)
                    body += f.read(n)
                    f.readline()
                    if not n:
                        break
            else:
                body = f.read(int(heads.get("content-length", 0)))
            path, _, query = target.partition("?")
            log(f"git {method} {target} host={heads.get('host', '')}")
            env = {"PATH": os.environ["PATH"], "GIT_PROJECT_ROOT": root, "GIT_HTTP_EXPORT_ALL": "1", "REQUEST_METHOD": method, "PATH_INFO": path,
                   "QUERY_STRING": query, "CONTENT_TYPE": heads.get("content-type", ""), "CONTENT_LENGTH": str(len(body)), "REMOTE_USER": "tester",
                   "REMOTE_ADDR": "10.9.9.1", "GIT_PROTOCOL": heads.get("git-protocol", ""), "HTTP_CONTENT_ENCODING": heads.get("content-encoding", ""),
                   "GIT_CONFIG_COUNT": "1", "GIT_CONFIG_KEY_0": "safe.directory", "GIT_CONFIG_VALUE_0": "*"}
            r = subprocess.run([backend], input=body, env=env, capture_output=True).stdout
            head, _, out = r.partition(b"\r\n\r\n")
            status, keep = b"200 OK", []
            for h in head.split(b"\r\n"):
                if h.lower().startswith(b"status:"):
                    status = h[7:].strip()
                elif h:
                    keep.append(h)
            c.sendall(b"HTTP/1.1 " + status + b"\r\n" + b"".join(h + b"\r\n" for h in keep) + b"Content-Length: %d\r\n\r\n" % len(out) + out)

    return serve


# --- proxies without rules, for the controls --------------------------------------------------------------------------

def relay(a, b):
    pair = {a: b, b: a}
    while pair:
        ready, _, _ = select.select(list(pair), [], [], 20)
        if not ready:
            return
        for s in ready:
            d = s.recv(65536)
            if not d:
                return
            pair[s].sendall(d)


def dial(host, port):
    host = host.strip("[]")
    return socket.create_connection((host, port), timeout=8)


def open_http_proxy(c):
    buf = b""
    while b"\r\n\r\n" not in buf:
        d = c.recv(65536)
        if not d:
            return
        buf += d
    head, rest = buf.split(b"\r\n\r\n", 1)
    lines = head.decode("latin1").split("\r\n")
    method, target = lines[0].split(" ")[:2]
    if method == "CONNECT":
        host, _, port = target.rpartition(":")
        up = dial(host, int(port))
        c.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        if rest:
            up.sendall(rest)
    else:
        authority, _, path = target.split("://", 1)[1].partition("/")
        authority = authority.rpartition("@")[2]
        host, port = authority, 80
        if ":" in authority.rpartition("]")[2]:
            host, _, p = authority.rpartition(":")
            port = int(p)
        up = dial(host, port)
        up.sendall((f"{method} /{path} HTTP/1.1\r\n" + "".join(x + "\r\n" for x in lines[1:])).encode("latin1") + b"\r\n" + rest)
    relay(c, up)


def open_socks_proxy(c):
    n = c.recv(2)[1]
    c.recv(n)
    c.sendall(b"\5\0")
    _, command, _, kind = c.recv(4)
    if kind == 1:
        host = socket.inet_ntop(socket.AF_INET, c.recv(4))
    elif kind == 4:
        host = socket.inet_ntop(socket.AF_INET6, c.recv(16))
    else:
        host = c.recv(c.recv(1)[0]).decode("latin1")
    port = int.from_bytes(c.recv(2), "big")
    if command != 1:
        c.sendall(b"\5\0\0\1\0\0\0\0\0\0")
        return
    up = dial(host, port)
    c.sendall(b"\5\0\0\1\0\0\0\0\0\0")
    relay(c, up)


print("up", flush=True)
sys.stdin.readline()
time.sleep(0.3)
if mode == "outside":
    for address in (OUT4, META):
        for port in (80, 8080):
            listen(socket.AF_INET, (address, port), http(f"http:{address}:{port}"))
    listen(socket.AF_INET, (OUT4, 443), first_bytes("tls"))
    listen(socket.AF_INET, (OUT4, 25), banner("smtp"))
    listen(socket.AF_INET, (OUT4, 443), udp("udp443"), socket.SOCK_DGRAM)
    listen(socket.AF_INET, (OUT4, 9999), udp("udp9999"), socket.SOCK_DGRAM)
    listen(socket.AF_INET6, (OUT6, 80), http("http6"))
    listen(socket.AF_INET, (DNS, 53), dns_udp, socket.SOCK_DGRAM)
    listen(socket.AF_INET, (DNS, 53), dns_tcp)
    state = os.path.dirname(log_path)
    listen(socket.AF_INET, (OUT4_TLS, 443), tls_server(state, http("https")))
    if len(sys.argv) > 3:
        listen(socket.AF_INET, (OUT4, 8001), git_http(sys.argv[3]))
        listen(socket.AF_INET, (OUT4_GIT, 443), tls_server(state, git_http(sys.argv[3])))
else:
    def abstract(c):
        log("abs " + c.recv(200).decode("latin1"))
        c.sendall(b"CANARY")

    for port in (80, 8099):
        listen(socket.AF_INET, ("0.0.0.0", port), http("loop4"))
        listen(socket.AF_INET6, ("::1", port), http("loop6"))
    listen(socket.AF_INET, ("127.0.0.1", 8099), udp("loopudp"), socket.SOCK_DGRAM)
    listen(socket.AF_UNIX, "\0canary-abs", abstract)
    # /run is a file system of this namespace's own (the stage mounts it), so these are nobody else's sockets.
    for path in ("/run/docker.sock", "/run/nscd/socket", "/run/dbus/system_bus_socket", "/run/systemd/resolve/io.systemd.Resolve"):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        listen(socket.AF_UNIX, path, abstract)
        os.chmod(path, 0o666)
    listen(socket.AF_INET, ("127.0.0.1", 3128), open_http_proxy)
    listen(socket.AF_INET, ("127.0.0.1", 1080), open_socks_proxy)
print("ready", flush=True)
sys.stdin.read()  # ends when the tests end, whichever way
