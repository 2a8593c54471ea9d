"""Visits to containers by clients who do not keep to the protocol. fuzz.py begins it, on a server with a node."""

import base64
import json
import pathlib
import socket
import ssl
import struct
import time
import urllib.parse

POD = {
    "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "host"},
    "spec": {
        "terminationGracePeriodSeconds": 1, "restartPolicy": "Never",
        "containers": [{"name": "main", "image": "unused", "stdin": True, "command": ["cat"]}],
    },
}
PLACE = "/api/v1/namespaces/default/pods"
PROTOCOLS = ["v5.channel.k8s.io", "v4.channel.k8s.io", "v4.base64.channel.k8s.io", "channel.k8s.io",
             "base64.channel.k8s.io"]
PATIENCE_SECONDS = 60


class Visits:
    def __init__(self, fuzz):
        self.fuzz, self.random = fuzz, fuzz.random
        # So long sleeps nobody else, so what is left of a visit is found by it.
        self.nap = f"{10_000_000 + self.random.randrange(10_000_000)}"

    def run(self, seconds):
        code, answer = self.fuzz.get(PLACE, json.dumps(POD).encode())
        assert code == 201, answer
        self.wait("the Pod runs", lambda: self.phase() == "Running")
        assert self.polite() == b"well", "nobody can be visited"
        until, counts, kept = time.monotonic() + seconds, {"agreed": 0, "refused": 0, "broken": 0}, []
        while time.monotonic() < until:
            try:
                connection, agreed = self.begin()
                counts["agreed" if agreed else "refused"] += 1
                if agreed:
                    connection.sendall(self.nonsense())
                if self.random.random() < 0.5:
                    connection.settimeout(0.05)
                    connection.recv(65536)
                kept.append(connection)
            except (OSError, ssl.SSLError):
                # It may close the connection at any time.
                counts["broken"] += 1
            # Who stays reads nothing and says nothing.
            if len(kept) > 20:
                self.leave(kept.pop(self.random.randrange(len(kept))))
        for connection in kept:
            self.leave(connection)
        assert counts["agreed"] > 0, counts
        self.wait("every program has ended", lambda: not self.is_anybody_asleep())
        assert self.polite() == b"well", "nobody can be visited any more"
        assert self.phase() == "Running", "the container has ended with its visitors"
        print(f"visits: {counts}", flush=True)

    def phase(self):
        return json.loads(self.fuzz.get(f"{PLACE}/host")[1]).get("status", {}).get("phase")

    def wait(self, what, is_so):
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not is_so():
            assert time.monotonic() < deadline, f"not within {PATIENCE_SECONDS} s: {what}"
            time.sleep(0.1)

    def is_anybody_asleep(self):
        for process in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if self.nap.encode() in process.read_bytes().split(b"\0"):
                    return True
            except OSError:
                pass
        return False

    def connect(self, path, protocol):
        tls = ssl.create_default_context(cafile=self.fuzz.authority)
        raw = socket.create_connection(self.fuzz.address, timeout=10)
        connection = tls.wrap_socket(raw, server_hostname=self.fuzz.address[0])
        key = base64.b64encode(self.random.randbytes(16)).decode()
        connection.sendall(
            f"GET {path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {self.fuzz.token}\r\n"
            f"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Protocol: {protocol}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head:
            # Byte by byte, so that nothing of the first frame is lost.
            piece = connection.recv(1)
            if not piece:
                break
            head += piece
        return connection, head.startswith(b"HTTP/1.1 101")

    def begin(self):
        """A visit that may be agreed on."""
        command = self.random.choice([["cat"], ["true"], ["head", "-c", "300000", "/dev/zero"],
                                      ["sleep", self.nap], ["sh", "-c", f"trap '' TERM HUP; sleep {self.nap}"],
                                      ["\0"], ["x" * 5000], []])
        query = [("command", word) for word in command]
        query += [(name, self.random.choice(["1", "true", "0", "x", ""])) for name in
                  ["stdin", "stdout", "stderr", "tty"] if self.random.random() < 0.8]
        part = "exec" if self.random.random() < 0.8 else "attach"
        protocol = self.random.choice(PROTOCOLS)
        return self.connect(f"{PLACE}/host/{part}?{urllib.parse.urlencode(query)}", protocol)

    def nonsense(self):
        return b"".join(self.frame() for _ in range(self.random.randrange(1, 60)))

    def frame(self):
        """A frame that is right in most, or not at all."""
        chance = self.random.random()
        if chance < 0.05:
            return self.random.randbytes(self.random.randrange(1, 200))
        opcode = self.random.choice([0, 1, 2, 2, 2, 2, 8, 9, 10, self.random.randrange(16)])
        is_last, reserved = self.random.random() < 0.9, 0 if self.random.random() < 0.95 else 0x70
        payload = self.payload()
        if opcode in (8, 9, 10) and self.random.random() < 0.8:
            payload = payload[:125]
        length = len(payload)
        if self.random.random() < 0.03:
            length = self.random.choice([126, 65535, 65536, 1 << 31, (1 << 63) - 1, 1 << 63])
        first = (0x80 if is_last else 0) | reserved | opcode
        is_masked = 0x80 if self.random.random() < 0.97 else 0
        mask = self.random.randbytes(4) if is_masked else b""
        if is_masked:
            payload = bytes(byte ^ mask[at % 4] for at, byte in enumerate(payload))
        return bytes([first]) + size(length, is_masked, self.random.random() < 0.05) + mask + payload

    def payload(self):
        channel = bytes([self.random.choice([0, 0, 1, 2, 3, 4, 4, 255, self.random.randrange(256)])])
        return self.random.choice([
            b"", channel, channel + self.random.randbytes(self.random.randrange(300)),
            channel + b"a" * 20_000, b"\x04" + b'{"Width":80,"Height":24}',
            b"\x04" + b'{"Width":99999999999,"Height":-1}', b"\x04" + b"[" * 5000, b"\xff\x00", b"\xff\x07",
            b"0" + base64.b64encode(self.random.randbytes(50)), b"4eyJXaWR0aCI6", b"0===", b"9YQ==",
            struct.pack(">H", self.random.randrange(65536)) + b"bye",
        ])

    def leave(self, connection):
        """Goes away, at times without a word."""
        try:
            if self.random.random() < 0.5:
                linger = struct.pack("ii", 1, 0)
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.close()
        except OSError:
            pass

    def polite(self):
        """What a program says to somebody who keeps to the protocol."""
        query = urllib.parse.urlencode([("command", "printf"), ("command", "well"), ("stdout", "1")])
        connection, agreed = self.connect(f"{PLACE}/host/exec?{query}", "v5.channel.k8s.io")
        assert agreed, "a visit was refused"
        connection.settimeout(PATIENCE_SECONDS)
        heard = b""
        reader = connection.makefile("rb")
        while True:
            opcode, length = reader.read(2)
            length &= 0x7F
            if length == 126:
                (length,) = struct.unpack(">H", reader.read(2))
            elif length == 127:
                (length,) = struct.unpack(">Q", reader.read(8))
            payload = reader.read(length)
            if opcode & 15 == 8:
                connection.close()
                return heard
            if opcode & 15 == 2 and payload[:1] == b"\1":
                heard += payload[1:]


def size(length, is_masked, is_wide):
    if length < 126 and not is_wide:
        return bytes([is_masked | length])
    if length < 1 << 16 and not is_wide:
        return bytes([is_masked | 126]) + length.to_bytes(2, "big")
    return bytes([is_masked | 127]) + length.to_bytes(8, "big")
