"""Sends a server what no client would send. testing/fuzz/run starts it, and says what it is for."""

import argparse
import json
import os
import pathlib
import random
import re
import socket
import ssl
import subprocess
import sys
import time
import urllib.request

import yaml

from load import Load
from visits import Visits

# An answer that is not there by then will never be; the server gives a request a minute.
PATIENCE_SECONDS = 90
# Far above what it needs for requests of 3 MiB, of which it takes some at once.
MOST_BYTES = 1 << 30


def main():
    parser = argparse.ArgumentParser()
    for name in ["data", "audit"]:
        parser.add_argument(f"--{name}", type=pathlib.Path, required=True)
    for name in ["server", "seed", "seconds"]:
        parser.add_argument(f"--{name}", type=int, required=True)
    parser.add_argument("--visits", action="store_true")
    fuzz = Fuzz(parser.parse_args())
    fuzz.is_well()
    before = fuzz.connections()
    if fuzz.options.visits:
        Visits(fuzz).run(fuzz.options.seconds / 6)
    else:
        fuzz.bodies(fuzz.options.seconds / 6)
        fuzz.bytes(fuzz.options.seconds / 6)
        Load(fuzz).run(fuzz.options.seconds / 12)
        fuzz.requests(fuzz.options.seconds)
    fuzz.is_well()
    # Whoever has said nothing is sent away after ten seconds, and after ten more if need be.
    deadline = time.monotonic() + PATIENCE_SECONDS
    while fuzz.connections() > before:
        assert time.monotonic() < deadline, f"{fuzz.connections()} connections stay"
        time.sleep(0.2)
    peak = fuzz.peak()
    assert peak < MOST_BYTES, f"the server took {peak >> 20} MiB"
    codes = fuzz.codes()
    print(f"answers {dict(sorted(codes.items()))}, peak {peak >> 20} MiB", flush=True)


class Fuzz:
    def __init__(self, options):
        self.options = options
        self.random = random.Random(options.seed)
        config = yaml.safe_load((options.data / "kubeconfig").read_text())
        cluster = config["clusters"][0]["cluster"]
        self.url = cluster["server"]
        host, port = self.url.removeprefix("https://").rsplit(":", 1)
        self.address = (host, int(port))
        self.authority = options.data / "authority.pem"
        self.authority.write_bytes(decoded(cluster["certificate-authority-data"]))
        user = next(user["user"] for user in config["users"] if "token" in user["user"])
        self.token = user["token"]
        self.tls = ssl.create_default_context(cafile=self.authority)

    def get(self, path, body=None, media_type="application/json", method=None, accept=None):
        """An answer, whatever it is."""
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": media_type, "Accept": accept or "*/*"}
        request = urllib.request.Request(self.url + path, body, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_SECONDS, context=self.tls) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read()

    def is_well(self):
        assert self.get("/livez") == (200, b"ok"), "the server is not well"

    # Bodies.

    def bodies(self, seconds):
        """Protobuf that is broken, nested, endless or of something else."""
        places = ["/api/v1/namespaces/default/pods", "/apis/batch/v1/namespaces/default/jobs",
                  "/api/v1/namespaces", "/apis/coordination.k8s.io/v1/namespaces/default/leases"]
        media_type = "application/vnd.kubernetes.protobuf"
        until, count, codes = time.monotonic() + seconds, 0, {}
        while time.monotonic() < until:
            place = self.random.choice(places)
            method = self.random.choice(["POST", "POST", "POST", "DELETE", "PUT"])
            path = place if method == "POST" else place + "/x"
            code, answer = self.get(path, self.protobuf(), media_type, method)
            assert code < 500, f"{method} {path}: {code} {answer[:500]}"
            codes[code] = codes.get(code, 0) + 1
            count += 1
        assert count > 0
        self.is_well()
        print(f"{count} bodies in protobuf: {codes}", flush=True)

    def protobuf(self):
        kind = self.random.choice([("batch/v1", "Job"), ("v1", "Pod"), ("v1", "DeleteOptions"), ("", "")])
        type_meta = field(1, kind[0].encode()) + field(2, kind[1].encode())
        raw = self.message(self.random.choice([1, 3, 8, 200]))
        envelope = b"k8s\0" + field(1, type_meta) + field(2, raw)
        choice = self.random.random()
        if choice < 0.2:
            return self.random.randbytes(self.random.randrange(2000))
        if choice < 0.5:
            envelope = bytearray(envelope)
            for _ in range(self.random.randrange(1, 10)):
                envelope[self.random.randrange(len(envelope))] = self.random.randrange(256)
            return bytes(envelope)
        if choice < 0.7:
            return envelope[: self.random.randrange(len(envelope))]
        if choice < 0.72:
            return b"k8s\0" + field(2, b"\x0a\0" * 500_000)
        return envelope

    def message(self, depth):
        parts = []
        for _ in range(self.random.randrange(1, 6)):
            number, wire = self.random.randrange(1, 40), self.random.randrange(8)
            if depth > 0 and self.random.random() < 0.6:
                parts.append(field(number, self.message(depth - 1) if depth < 20 else nested(depth)))
            elif wire == 0:
                parts.append(varint(number << 3) + varint(self.random.getrandbits(64)))
            else:
                size = self.random.randrange(12)
                parts.append(varint(number << 3 | wire) + self.random.randbytes(size))
        return b"".join(parts)[:100_000]

    # Bytes.

    def bytes(self, seconds):
        """What is no TLS, no HTTP, or too much of it; and clients who stay away in the middle."""
        until, count, kept = time.monotonic() + seconds, 0, []
        while time.monotonic() < until:
            try:
                self.hostile(kept)
            except (OSError, ssl.SSLError):
                # It may close the connection at any time: that is an answer, too.
                pass
            count += 1
            if len(kept) > 50:
                kept.pop(self.random.randrange(len(kept))).close()
            if count % 50 == 0:
                self.is_well()
        for connection in kept:
            connection.close()
        self.is_well()
        print(f"{count} hostile connections", flush=True)

    def hostile(self, kept):
        connection = socket.create_connection(self.address, timeout=2)
        if self.random.random() < 0.25:
            connection.sendall(self.random.randbytes(self.random.randrange(1, 3000)))
        else:
            protocols = self.random.choice([["http/1.1"], ["h2"], ["nonsense"], []])
            tls = ssl.create_default_context(cafile=self.authority)
            if protocols:
                tls.set_alpn_protocols(protocols)
            connection = tls.wrap_socket(connection, server_hostname=self.address[0])
            connection.sendall(self.http(connection.selected_alpn_protocol()))
        if self.random.random() < 0.5:
            connection.settimeout(0.05)
            connection.recv(65536)
        kept.append(connection)

    def http(self, protocol):
        head = f"Host: x\r\nAuthorization: Bearer {self.token}\r\n"
        exec_path = "/api/v1/namespaces/default/pods/x/exec?command=true&stdout=1"
        upgrade = "Connection: Upgrade\r\nUpgrade: {}\r\nSec-WebSocket-Version: 13\r\n"
        if protocol == "h2":
            preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
            frames = [self.frame() for _ in range(self.random.randrange(1, 200))]
            return preface + b"\0\0\0\4\0\0\0\0\0" + b"".join(frames)
        request = self.random.choice([
            f"GET /{'x' * 200_000} HTTP/1.1\r\n{head}\r\n",
            f"GET / HTTP/1.1\r\n{head}" + "A: b\r\n" * 5_000 + "\r\n",
            f"GET / HTTP/9.9\r\n{head}\r\n",
            f"POST /api/v1/namespaces HTTP/1.1\r\n{head}Content-Length: 99999999999\r\n\r\n{{",
            f"POST /api/v1/namespaces HTTP/1.1\r\n{head}Content-Length: -1\r\n\r\n{{",
            f"POST /api/v1/namespaces HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\nfffffffff\r\n",
            f"POST /api/v1/namespaces HTTP/1.1\r\n{head}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{{}}",
            f"GET {exec_path} HTTP/1.1\r\n{head}{upgrade.format('websocket')}Sec-WebSocket-Key: x\r\n\r\n",
            f"POST {exec_path} HTTP/1.1\r\n{head}{upgrade.format('SPDY/3.1')}\r\n",
            f"GET /api/v1/pods?watch=1&timeoutSeconds=1 HTTP/1.1\r\n{head}{upgrade.format('h2c')}\r\n",
            "\r\n" * 1000,
            "GET / HTTP/1.1\r\nHost: x\r\n" + head[: self.random.randrange(len(head))],
        ]).encode()
        if self.random.random() < 0.3:
            request = bytearray(request[:5_000])
            for _ in range(self.random.randrange(1, 8)):
                request[self.random.randrange(len(request))] = self.random.randrange(256)
        return bytes(request)

    def frame(self):
        payload = self.random.randbytes(self.random.randrange(60))
        kind, flags = self.random.randrange(12), self.random.randrange(256)
        stream = self.random.choice([0, 1, 3, self.random.getrandbits(31)])
        length = len(payload) if self.random.random() < 0.9 else self.random.getrandbits(24)
        return length.to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload

    # Requests.

    def requests(self, seconds):
        """What the description of the API permits, and what it almost permits."""
        index = json.loads(self.get("/openapi/v3")[1])["paths"]
        documents = [path for path in sorted(index) if re.fullmatch(r"api/v1|apis/[^/]+/v1", path)]
        # Of some 140 operations it makes 20 requests a second, in two thirds of the time.
        examples = max(int(seconds / 10), 2)
        for path in documents:
            place = pathlib.Path(f"{path.replace('/', '-')}.json")
            place.write_bytes(self.get(index[path]["serverRelativeURL"])[1])
            self.schemathesis(place, examples)
            self.is_well()

    def schemathesis(self, document, examples):
        hooks = pathlib.Path(__file__).with_name("hooks.py")
        program = pathlib.Path(sys.executable).with_name("schemathesis")
        command = [
            program, "run", document, "--url", self.url, "--tls-verify", self.authority,
            "--header", f"Authorization: Bearer {self.token}", "--checks", "not_a_server_error",
            "--phases", "fuzzing", "--max-examples", str(examples), "--workers", "2", "--warnings", "off",
            "--seed", str(self.options.seed), "--suppress-health-check", "all",
            "--request-timeout", str(PATIENCE_SECONDS), "--no-color", "--no-shrink",
        ]
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks", "PYTHONPATH": str(hooks.parent)}
        ran = subprocess.run(command, env=environment, capture_output=True, text=True)
        said = ran.stdout + ran.stderr
        made = re.search(r"(\d+) generated.*", said)
        assert made and int(made[1]) > 0 and ran.returncode in (0, 1), said
        # What it calls a failure that is none: a version that has not come yet is answered 504, as by
        # kube-apiserver. The audit log has every answer, and is judged at the end.
        print(f"{document.stem}: {made[0]}", flush=True)

    # The server.

    def connections(self):
        folder = pathlib.Path(f"/proc/{self.options.server}/fd")
        links = [os.readlink(link) for link in folder.iterdir() if link.is_symlink()]
        return sum(link.startswith("socket:") for link in links)

    def peak(self):
        status = pathlib.Path(f"/proc/{self.options.server}/status").read_text()
        return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) << 10

    def resident(self):
        status = pathlib.Path(f"/proc/{self.options.server}/status").read_text()
        return int(re.search(r"VmRSS:\s*(\d+) kB", status)[1]) << 10

    def codes(self):
        """How often each code was answered; none of them may say that the server has failed."""
        codes, wrong = {}, []
        for line in self.options.audit.open():
            event = json.loads(line)
            status = event.get("responseStatus", {})
            code = status.get("code", 0)
            codes[code] = codes.get(code, 0) + 1
            is_early = code == 504 and "Too large resource version" in status.get("message", "")
            if event["stage"] == "Panic" or (code >= 500 and not is_early):
                wrong.append(line)
        assert not wrong, "the server has failed:\n" + "".join(wrong[:20])
        return codes


def decoded(text):
    import base64

    return base64.b64decode(text)


def varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def nested(depth):
    content = b""
    for _ in range(depth):
        content = field(1, content)
    return content


if __name__ == "__main__":
    main()
