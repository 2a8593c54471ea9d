"""What costs a server more than it costs whoever sends it. fuzz.py begins it, on a server without a node."""

import base64
import json
import pathlib
import socket
import ssl
import threading
import time

PLACE = "/api/v1/namespaces/default/configmaps"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
BODY_BYTES = 3 << 20
# As many as there is room for.
CONNECTIONS = 512
WATCHES = 40
# Whoever asks how the server is must not wait for those who send it much. Two cores may have a debug build to run.
SLOWEST_SECONDS = 15
# Forty watches with a piece each; with all that they have to tell it would be three times as much.
WATCHES_BYTES = 256 << 20


class Load:
    def __init__(self, fuzz):
        self.fuzz, self.random = fuzz, fuzz.random

    def run(self, seconds):
        with Pulse(self.fuzz) as pulse:
            self.owners(seconds)
            self.values()
            self.unread()
            self.idle()
        assert pulse.slowest < SLOWEST_SECONDS, f"/livez took {pulse.slowest:.1f} s"
        print(f"large bodies, {WATCHES} unread watches, {CONNECTIONS} idle connections: /livez took "
              f"{pulse.slowest:.1f} s at most", flush=True)

    def ask(self, path, body=None, media_type="application/json", method=None, accept=None):
        code, answer = self.fuzz.get(path, body, media_type, method, accept)
        assert code < 500, f"{method} {path}: {code} {answer[:500]}"
        return code, answer

    def owners(self, seconds):
        """managedFields of any depth, and rows that Go has written with bytes changed; then all is read in every form."""
        rows = pathlib.Path(__file__).parents[2] / "crates/apiserver/tests/protobuf/rows.jsonl"
        rows = [json.loads(line) for line in rows.open()]
        bodies = [base64.b64decode(row["protobuf"]) for row in rows if row["kind"] == "ConfigMap"]
        until = time.monotonic() + seconds
        # The depths around those at which readers of JSON stop are always tried.
        depths = [64, 65, *range(118, 130)]
        while depths or time.monotonic() < until:
            depth = depths.pop() if depths else self.random.randrange(1, 200)
            self.ask(PLACE, owned(f"deep-{depth}", depth), PROTOBUF)
            body = bytearray(self.random.choice(bodies))
            for _ in range(self.random.randrange(1, 4)):
                body[self.random.randrange(20, len(body))] = self.random.randrange(256)
            self.ask(PLACE, bytes(body), PROTOBUF)
        for path, accept in [("", None), ("?pretty=1", None), ("", "application/yaml"), ("?includeObject=Object", TABLE)]:
            code, _ = self.ask(PLACE + path, accept=accept)
            assert code == 200, f"{path} {accept}: {code}"
        self.fuzz.is_well()

    def values(self):
        """As many values as a body can hold, in every form."""
        for item in ['""', "1", "{}", '"x"']:
            items = ",".join([item] * (BODY_BYTES // (len(item) + 1) - 100))
            for media_type in ["application/json", "application/yaml"]:
                self.ask(PLACE, f'{{"metadata":{{"name":"x","finalizers":[{items}]}}}}'.encode(), media_type)
        finalizers = b"\x72\0" * (BODY_BYTES // 2 - 100)
        self.ask(PLACE, b"k8s\0" + field(2, field(1, finalizers)), PROTOBUF)
        # As many ports as a body can hold; each is the twin of all others, or of none.
        for port in ['{"containerPort":80}', '{"containerPort":80,"hostPort":%d}']:
            ports = ",".join(port % number if "%" in port else port for number in range(1, 60_000))
            pod = f'{{"metadata":{{"name":"p"}},"spec":{{"containers":[{{"name":"c","image":"i","ports":[{ports}]}}]}}}}'
            self.ask("/api/v1/namespaces/default/pods?dryRun=All", pod.encode())
        self.fuzz.is_well()

    def unread(self):
        """Watches over large objects that nobody reads."""
        for number in range(64):
            value = {"metadata": {"name": f"large-{number}"}, "data": {"v": "v" * 300_000}}
            self.ask(PLACE, json.dumps(value).encode())
        before, kept = self.fuzz.resident(), []
        for _ in range(WATCHES):
            connection = self.connect("h2")
            connection.sendall(self.request(f"{PLACE}?watch=1"))
            kept.append(connection)
        time.sleep(3)
        taken = self.fuzz.resident() - before
        assert taken < WATCHES_BYTES, f"{WATCHES} unread watches took {taken >> 20} MiB"
        for connection in kept:
            connection.close()
        self.ask(PLACE, method="DELETE")
        self.fuzz.is_well()

    def idle(self):
        """Connections of somebody who is known, on which nothing happens any more."""
        kept = []
        for _ in range(CONNECTIONS):
            connection = self.connect("h2")
            connection.sendall(self.request("/version"))
            connection.recv(65536)
            kept.append(connection)
        time.sleep(2)
        before = time.monotonic()
        self.fuzz.is_well()
        took = time.monotonic() - before
        assert took < SLOWEST_SECONDS, f"{took:.1f} s behind {CONNECTIONS} idle connections"
        for connection in kept:
            connection.close()

    def connect(self, protocol):
        connection = socket.create_connection(self.fuzz.address, timeout=30)
        tls = ssl.create_default_context(cafile=self.fuzz.authority)
        tls.set_alpn_protocols([protocol])
        return tls.wrap_socket(connection, server_hostname=self.fuzz.address[0])

    def request(self, path):
        """The beginning of a connection of HTTP/2 with a GET."""
        token = f"Bearer {self.fuzz.token}"
        # By their numbers in the table of HPACK: GET, https, :path, :authority and authorization.
        head = b"\x82\x87\x04" + text(path) + b"\x01" + text("localhost") + b"\x0f\x08" + text(token)
        settings = b"\0\0\0\4\0\0\0\0\0"
        headers = len(head).to_bytes(3, "big") + b"\1\5\0\0\0\1" + head
        return b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + settings + headers


class Pulse:
    """Asks all the time how the server is, and notes how long it takes."""

    def __init__(self, fuzz):
        self.fuzz, self.slowest, self.is_over = fuzz, 0.0, threading.Event()
        self.thread = threading.Thread(target=self.beat, daemon=True)

    def beat(self):
        while not self.is_over.wait(0.1):
            before = time.monotonic()
            try:
                self.fuzz.is_well()
            except Exception as error:
                self.slowest = float("inf")
                print(f"/livez: {error}", flush=True)
                return
            self.slowest = max(self.slowest, time.monotonic() - before)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.is_over.set()
        self.thread.join()


def owned(name, depth):
    """A ConfigMap of which somebody owns a field so far down."""
    fields = '{"f:a":' * (depth - 1) + "{}" + "}" * (depth - 1)
    entry = field(1, b"x") + field(2, b"Update") + field(3, b"v1") + field(6, b"FieldsV1")
    entry += field(7, field(1, fields.encode()))
    return b"k8s\0" + field(2, field(1, field(1, name.encode()) + field(17, entry)))


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number):
    encoded = bytearray()
    while number > 0x7F:
        encoded.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(encoded) + bytes([number])


def text(content):
    """A text of HPACK as it is."""
    content = content.encode()
    length = bytes([len(content)]) if len(content) < 127 else b"\x7f" + varint(len(content) - 127)
    return length + content
