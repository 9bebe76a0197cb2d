"""What reading hostile files and servers costs: `python -m tests.bench.hostile_sources [NAME...]`.

Makes each file in a temporary folder (or a server on the loopback that says it), reads it in a forked child as `probe`
and as `scan` would, and prints CPU seconds, megabytes and how it ended. Bounds: 1.5 s of CPU and 150 MB each. The rows
that begin with "real" are of the size of the largest real files, made up here; their time is printed and not judged.
Linux only (it reads /proc). Exit code 1 where a row breaks its bounds or ends in anything but an answer or an error of
the tree.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import struct
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from jinjarun.errors import JinjarunError
from jinjarun.sources import Source, open_source
from jinjarun.sources.server import RunningServer
from probes.scanner.walk import find
from tests.bench.children import RUNAWAY_SECONDS, forget_peak, in_child, peak_megabytes

SECONDS = 1.5
MEGABYTES = 150
REAL = "real"
MARKERS = [f"<|{name}|>" for name in ("im_end", "im_start", "eot_id", "end", "user", "assistant")] + ["</s>", " x", "a"]
CONFIG = "tokenizer_config.json"

File = Callable[[], "dict[str, bytes]"]
Speak = Callable[[socket.socket], None]


def added(count: int, text: str = "t{}") -> str:
    entries = (f'"{id}":{{"content":"{text.format(id)}","special":true}}' for id in range(count))
    return f'"added_tokens_decoder":{{{",".join(entries)}}}'


def config(body: str) -> dict[str, bytes]:
    return {CONFIG: f"{{{body}}}".encode()}


def tokenizer(body: str) -> dict[str, bytes]:
    return {"tokenizer.json": f"{{{body}}}".encode()}


def named(count: int) -> str:
    return ",".join(f'"{n}":"{n}"' for n in range(count))


def vocab(entries: str) -> dict[str, bytes]:
    return tokenizer(f'"model":{{"vocab":{{{entries}}}}}')


def numbered(count: int, text: str = "t{}") -> str:
    return ",".join(f'"{text.format(id)}":{id}' for id in range(count))


def full_folder() -> dict[str, bytes]:
    """Every file at its own bound; what they have together is beyond that of a model."""
    bulk = f'"x":[{",".join(["{}"] * 90_000)}],"y":"{"é" * 3_500_000}😀"'
    names = (CONFIG, "chat_template.json", "processor_config.json", "special_tokens_map.json", "config.json")
    return {name: f"{{{bulk}}}".encode() for name in names} | {"chat_template.jinja": b"x" * 3_900_000}


def many_templates() -> dict[str, bytes]:
    return {f"additional_chat_templates/{n}.jinja": ("x" * 3_000_000 + "😀").encode() for n in range(90)}


def gemma() -> dict[str, bytes]:
    """262,144 texts of several scripts, 514,000 merges of two, 6,400 added tokens: 34 MB."""
    scripts = (0x61, 0x4E00, 0x430, 0xAC00, 0x61, 0x1F300)
    texts = ["".join(chr(scripts[n % 6] + n * k % 23) for k in range(1, 2 + n % 5)) + str(n) for n in range(262_144)]
    merges = [[texts[n % 262_144], texts[n * 7 % 262_144]] for n in range(514_000)]
    tokens = [{"id": n, "content": texts[n], "lstrip": False, "special": n < 99} for n in range(6_400)]
    model = {"type": "BPE", "vocab": {text: n for n, text in enumerate(texts)}, "merges": merges}
    content = json.dumps({"added_tokens": tokens, "model": model}, ensure_ascii=False, indent=1)
    return {"tokenizer.json": content.encode()}


def speech() -> dict[str, bytes]:
    """A model for speech: 28,000 added tokens with all their fields."""
    fields = {"lstrip": False, "normalized": False, "rstrip": False, "single_word": False, "special": False}
    tokens = {str(n): {"content": f"<custom_token_{n}>"} | fields for n in range(128_000, 156_700)}
    return {CONFIG: json.dumps({"added_tokens_decoder": tokens}, indent=2).encode()}


def text(value: bytes) -> bytes:
    return struct.pack("<Q", len(value)) + value


def model(*pairs: bytes) -> dict[str, bytes]:
    return {"model.gguf": b"GGUF" + struct.pack("<IQQ", 3, 0, len(pairs)) + b"".join(pairs)}


def strings(key: bytes, values: list[bytes]) -> bytes:
    return text(key) + struct.pack("<IIQ", 9, 8, len(values)) + b"".join(map(text, values))


def tokens(values: list[bytes]) -> dict[str, bytes]:
    ids = text(b"tokenizer.ggml.bos_token_id") + struct.pack("<II", 4, 0)
    return model(strings(b"tokenizer.ggml.tokens", values), ids)


def template(number: int, value: str) -> bytes:
    return text(b"tokenizer.chat_template.%d" % number) + struct.pack("<I", 8) + text(value.encode())


FALSE_MATCHES = b"".join(map(text, (marker.encode() for marker in MARKERS)))


def parquet(column: list[Any], ids: list[str] | None = None, **options: Any) -> dict[str, bytes]:
    """Empty where pyarrow is not installed."""
    try:
        import pyarrow  # noqa: PLC0415
        import pyarrow.parquet  # noqa: PLC0415
    except ImportError:
        return {}
    out = pyarrow.BufferOutputStream()
    table = pyarrow.table({"id": ids or [str(n) for n in range(len(column))], "tokenizer_config": column})
    pyarrow.parquet.write_table(table, out, compression="zstd", **options)
    return {"rows.parquet": out.getvalue().to_pybytes()}


def lines(*values: bytes) -> dict[str, bytes]:
    return {"rows.jsonl": b"\n".join(values)}


FILES: dict[str, File] = {
    "added tokens and names": lambda: config(
        added(30_000) + "," + ",".join(f'"n{n}_token":"t{n}"' for n in range(30_000))
    ),
    "names that are no tokens": lambda: config(",".join(f'"n{n}_token":"t{n}"' for n in range(299_000))),
    "added tokens and ids of eos": lambda: config(added(30_000))
    | {"generation_config.json": json.dumps({"eos_token_id": list(range(150_000))}).encode()},
    "objects": lambda: config(f'"x":[{",".join(["{}"] * 2_600_000)}]'),
    "objects within bounds": lambda: config(f'"x":[{",".join(["{}"] * 99_000)}]'),
    "numbers": lambda: config(f'"x":[{",".join(["1e5"] * 299_000)}]'),
    "keys": lambda: config(",".join(f'"key{n:014}":"value{n:08}"' for n in range(190_000))),
    "keys with emoji": lambda: config(",".join(f'"😀k{n}":"😀v{n}"' for n in range(250_000))),
    "keys that stand twice": lambda: config(",".join(f'"k{n % 140_000}":[]' for n in range(99_000 * 2))),
    "objects of one key": lambda: config(f'"x":[{",".join(["{a:1}".replace("a", chr(34) + "a" + chr(34))] * 99_000)}]'),
    "depth": lambda: config(f'"x":{"[" * 3_900_000}{"]" * 3_900_000}'),
    "depth behind strings": lambda: config('"x":' + '["]",' * 1_300_000),
    "digits": lambda: config(f'"x":{"9" * 7_900_000}'),
    "numbers of 4,300 digits": lambda: config(f'"x":[{",".join(["9" * 4_300] * 1_800)}]'),
    "a float of 8 MB": lambda: config(f'"x":1.{"9" * 7_900_000}e300'),
    "one text": lambda: config(f'"chat_template":"{"x" * 7_900_000}😀"'),
    "brackets in one text": lambda: config(f'"chat_template":"{"{[" * 3_900_000}"'),
    "lone surrogates": lambda: config(f'"bos_token":"{chr(92)}ud800{"x" * 7_000_000}"'),
    "templates": lambda: config(f'"chat_template":[{",".join(["{}"] * 99_000)}]'),
    "templates by name": lambda: config(f'"chat_template":{{{named(150_000)}}}'),
    "a full folder": full_folder,
    "additional templates": many_templates,
    "added_tokens.json": lambda: {"added_tokens.json": f"{{{numbered(299_000)}}}".encode()},
    "tokenizer: objects": lambda: tokenizer(f'"x":[{",".join(["{}"] * 16_000_000)}]'),
    "tokenizer: nested objects": lambda: tokenizer(f'"x":[{",".join(["[[{}]]"] * 7_000_000)}]'),
    "tokenizer: depth": lambda: tokenizer(f'"x":{"[" * 25_000_000}{"]" * 25_000_000}'),
    "tokenizer: a text of 50 MB": lambda: tokenizer(f'"x":"{"x" * 50_000_000}"'),
    "tokenizer: a token of 50 MB": lambda: vocab(f'"{"x" * 50_000_000}😀":1'),
    "tokenizer: tokens of 9 kB": lambda: vocab(numbered(5_500, "{}" + "x" * 9_000)),
    "tokenizer: large texts": lambda: vocab(numbered(520_000, "😀{}" + "x" * 70)),
    "tokenizer: most tokens": lambda: tokenizer(
        f'"model":{{"vocab":{{{numbered(520_000)}}}, "merges": [{",".join(["[1,2]"] * 900_000)}]}}, "added_tokens":['
        + ",".join(f'{{"id":{n},"content":"a{n}","special":true}}' for n in range(70_000))
        + "]"
    ),
    "tokenizer: too many tokens": lambda: vocab(numbered(3_000_000)),
    "tokenizer: scores": lambda: tokenizer(
        f'"model":{{"vocab":[{",".join(f"[{chr(34)}t{n}{chr(34)},-1.5]" for n in range(519_000))}]}}'
    ),
    "tokenizer: one key": lambda: vocab(",".join(['"same":1'] * 519_000)),
    "tokenizer: added tokens": lambda: tokenizer(f'"added_tokens":[{",".join(["{}"] * 5_000_000)}]'),
    "tokenizer: a large added token": lambda: tokenizer(f'"added_tokens":[{{"id":1,"content":"{"x" * 40_000_000}"}}]'),
    "tokenizer: keys": lambda: tokenizer(",".join(f'"k{n}":1' for n in range(4_000_000))),
    "tokenizer: post-processor": lambda: tokenizer(f'"post_processor":{{"x":[{",".join(["[]"] * 10_000_000)}]}}'),
    "tokenizer: not UTF-8": lambda: {"tokenizer.json": b'{"x": "' + b"x" * 50_000_000 + b'\xff"}'},
    "tokenizer: line breaks": lambda: {"tokenizer.json": b"\n" * 50_000_000},
    "tokenizer: merges of 50 MB": lambda: tokenizer(
        f'"model":{{"merges":[{",".join([json.dumps(["a" * 22, "b" * 22])] * 920_000)}]}}'
    ),
    "gguf: a token with false matches": lambda: tokens([FALSE_MATCHES * 200_000]),
    "gguf: tokens with false matches": lambda: tokens([(FALSE_MATCHES * 600)[:65_000]] * 480),
    "gguf: most tokens": lambda: tokens([b"%d" % n for n in range(519_000)]),
    "gguf: equal tokens": lambda: tokens([b"<|im_end|>"] * 519_000),
    "gguf: too many tokens": lambda: tokens([b"%d" % n for n in range(1_500_000)]),
    "gguf: merges": lambda: model(strings(b"tokenizer.ggml.merges", [b"a b"] * 1_500_000)),
    "gguf: templates": lambda: model(*(template(n, "x" * 3_000 + "😀") for n in range(9_000))),
    "gguf: keys": lambda: model(
        *(text("é".encode() * 500 + b"%d" % n) + struct.pack("<I", 0) + b"\0" for n in range(16_384))
    ),
    "gguf: names": lambda: model(strings(b"tokenizer.chat_templates", [b"x" * 1_000] * 1_000)),
    "parquet: a text of 400 MB": lambda: parquet(["x" * 400_000_000]),
    "parquet: pages of 316 MB": lambda: parquet(["y" * 7_900_000] * 40, use_dictionary=False),
    "parquet: an id of 400 MB": lambda: parquet(["{}"], ids=["i" * 400_000_000]),
    "parquet: a list of 40 million": lambda: parquet([{"chat_template": [True] * 40_000_000}]),
    "jsonl: objects": lambda: lines(b'{"id":"x","tokenizer_config":[' + b",".join([b"{}"] * 2_600_000) + b"]}"),
    "jsonl: objects in a text": lambda: lines(
        b'{"id":"x","tokenizer_config":"{\\"x\\":\\u005b' + b"\\u002c".join([b"\\u007b\\u007d"] * 400_000) + b']}"}'
    ),
    "jsonl: an id of 7 MB": lambda: lines(b'{"id":"' + b"x" * 7_000_000 + b'","tokenizer_config":{}}'),
    "real: Gemma 3": gemma,
    "real: speech": speech,
}  # fmt: skip


def ok(body: bytes, *headers: bytes) -> bytes:
    length = b"Content-Length: %d" % len(body)
    return b"\r\n".join([b"HTTP/1.1 200 OK", *(headers or (length,)), b"", body])


def objects(count: int) -> bytes:
    return b'{"chat_template":"x","y":[' + b",".join([b"{}"] * count) + b"]}"


def flood(start: bytes, piece: bytes) -> Speak:
    """The same again and again, as fast as the client takes it."""

    def speak(client: socket.socket) -> None:
        client.sendall(start)
        while True:
            client.sendall(piece * 1_000)

    return speak


def say(data: Callable[[], bytes]) -> Speak:
    return lambda client: client.sendall(data())


def drip(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")
    while True:
        client.sendall(b" ")
        time.sleep(0.01)


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
SERVERS: dict[str, Speak] = {
    "server: objects": say(lambda: ok(objects(10_000_000))),
    "server: objects within the size": say(lambda: ok(objects(2_600_000))),
    "server: depth": say(lambda: ok(b"[" * 7_900_000)),
    "server: one text": say(lambda: ok(b'{"chat_template":"' + "é".encode() * 3_900_000 + '😀"}'.encode())),
    "server: caps": say(lambda: ok(f'{{"chat_template":"x","chat_template_caps":{{{named(250_000)}}}}}'.encode())),
    "server: digits": say(lambda: ok(json.dumps({"chat_template": "x", "build_info": "b" + "1" * 900}).encode())),
    "server: an endless body": flood(b"HTTP/1.1 200 OK\r\n\r\n", b" "),
    "server: chunks of one byte": flood(CHUNKED, b"1\r\n \r\n"),
    "server: a chunk that lies": say(lambda: CHUNKED + b"f" * 40 + b"\r\n{}"),
    "server: endless headers": flood(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"),
    "server: one endless header": flood(b"HTTP/1.1 200 OK\r\nX: ", b"y"),
    "server: continue": flood(b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
    "server: gzip": say(lambda: ok(gzip.compress(b" " * 100_000_000), b"Content-Encoding: gzip")),
    "server: a drip": drip,
}  # fmt: skip


@contextlib.contextmanager
def talking(speak: Speak) -> Iterator[str]:
    """A server that speaks once to each client, in a thread of this process."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(RUNAWAY_SECONDS * 2)

        def run() -> None:
            with contextlib.suppress(OSError):
                client, _ = listening.accept()
                with client:
                    client.recv(65_536)
                    speak(client)

        thread = threading.Thread(target=run, daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        thread.join(RUNAWAY_SECONDS)


def use(source: Source) -> None:
    """What commands ask of a source."""
    found = [source.tokens.find(marker) for marker in MARKERS]
    for id in range(200):
        source.tokens.token(id)
    names = len(source.templates)
    with contextlib.suppress(JinjarunError):
        source.template("no such name")
    assert len(found) == len(MARKERS), names


def read(target: str) -> str:
    """Reads a file or folder, or asks a server, as probe and scan do; how it ended."""
    ends = []
    if target.startswith("http"):
        server = RunningServer(target, seconds=5.0)
        try:
            server.source()
            return f"read, build {server.build_number}, caps {server.caps}"
        except JinjarunError as error:
            return str(error)
    if not target.endswith((".jsonl", ".parquet")):
        try:
            use(open_source(target))
            ends.append("read")
        except JinjarunError as error:
            ends.append(str(error))
    rows = errors = 0
    for row in find([target]):
        rows += 1
        errors += row.error is not None
        if row.error is not None and not ends:
            ends.append(row.error["message"])
    return "; ".join([*ends, f"{rows} rows, {errors} errors"])


def measured(target: str) -> dict[str, Any]:
    forget_peak()
    before, start = peak_megabytes(), time.process_time()
    try:
        end, good = read(target), True
    except Exception as error:
        end, good = f"{type(error).__name__} left the library: {error}"[:300], False
    return {
        "seconds": time.process_time() - start,
        "megabytes": peak_megabytes() - before,
        "end": end,
        "good": good,
    }


def apart(target: str) -> dict[str, Any]:
    """`measured`, in a child."""
    for answer in in_child(lambda: [measured(target)]):
        found: dict[str, Any] = answer
        return found
    return {"seconds": RUNAWAY_SECONDS, "megabytes": 0.0, "end": "the process died or never ended", "good": False}


def made(files: dict[str, bytes], folder: Path) -> str:
    """The files in a folder; the one file where only a file can be read."""
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)
    only = next(iter(files))
    return str(folder / only) if only.endswith((".jsonl", ".parquet", ".gguf")) else str(folder)


def main() -> int:
    wanted = sys.argv[1:]
    with contextlib.suppress(JinjarunError, ImportError):
        import pyarrow.parquet  # noqa: F401, PLC0415
    with tempfile.TemporaryDirectory() as trivial:
        made({CONFIG: b'{"chat_template":"x"}', "tokenizer.json": b'{"model":{"vocab":{"a":1}}}'}, Path(trivial))
        read(trivial)
    failed = 0
    for name in [*FILES, *SERVERS]:
        if wanted and not any(part in name for part in wanted):
            continue
        if name in SERVERS:
            with talking(SERVERS[name]) as url:
                answer = apart(url)
        else:
            with tempfile.TemporaryDirectory() as folder:
                files = FILES[name]()
                if not files:
                    print(f"{name}: not made, pyarrow is not installed")
                    continue
                target = made(files, Path(folder))
                del files
                answer = apart(target)
        slow = answer["seconds"] > SECONDS and not name.startswith(REAL)
        bad = slow or answer["megabytes"] > MEGABYTES or not answer["good"]
        failed += bad
        mark = "FAILED" if bad else "ok"
        print(
            f"{mark:6} {answer['seconds']:5.2f} s {answer['megabytes']:4.0f} MB  {name}: {answer['end'][-160:]}",
            flush=True,
        )
    print(f"allowed: {SECONDS} s of CPU and {MEGABYTES} MB: {f'{failed} rows break it' if failed else 'met'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
