"""A running server as a source: what it says is taken, and whatever it does is a SourceError in bounded time."""

from __future__ import annotations

import contextlib
import gzip
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.errors import SourceError
from jinjarun.sources import open_source
from jinjarun.sources import server as server_module
from jinjarun.sources.server import Prompt, RunningServer
from tests.sources.support import checked

PROPS: dict[str, Any] = {
    "chat_template": "{{ messages }}",
    "chat_template_tool_use": "{{ tools }}",
    "chat_template_caps": {"supports_tools": True},
    "bos_token": "<s>",
    "eos_token": "",
    "build_info": "b11434-1a2b3c",
    "model_alias": "tiny",
}
Answer = Callable[[str, bytes], tuple[int, Any]]


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[str]:
    """A server that answers with status and JSON (or bytes) by path and body."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.reply(b"")

        def do_POST(self) -> None:
            self.reply(self.rfile.read(int(self.headers["Content-Length"])))

        def reply(self, body: bytes) -> None:
            status, content = answer(self.path, body)
            data = content if isinstance(content, bytes) else json.dumps(content).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(data)))
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:9/props")
            self.end_headers()
            with contextlib.suppress(OSError):
                self.wfile.write(data)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@contextlib.contextmanager
def talking(speak: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that says to its one client whatever it wants."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def run() -> None:
            with contextlib.suppress(OSError):
                client, _ = listening.accept()
                with client:
                    client.recv(65536)
                    speak(client)

        thread = threading.Thread(target=run)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            thread.join()


def test_props_are_a_source() -> None:
    with answering(lambda path, body: (200, PROPS)) as url:
        source = open_source(url)
    assert (source.kind, source.name, source.revision) == ("server", "tiny", "b11434-1a2b3c")
    assert source.templates == {"default": "{{ messages }}", "tool_use": "{{ tools }}"}
    assert source.report()["key"] == "chat_template"
    assert source.tokens.bos is not None
    assert (source.tokens.bos.text, source.tokens.eos) == ("<s>", None)


def test_the_build_and_the_caps() -> None:
    with answering(lambda path, body: (200, PROPS)) as url:
        server = RunningServer(url)
        assert (server.build_number, server.caps) == (11434, {"supports_tools": True})
    with answering(lambda path, body: (200, {"chat_template": "x"})) as url:
        server = RunningServer(url)
        assert (server.build, server.build_number, server.caps) == ("", None, None)


def test_a_path_before_the_endpoints() -> None:
    asked = []

    def answer(path: str, body: bytes) -> tuple[int, Any]:
        asked.append(path)
        return 200, PROPS

    with answering(answer) as url:
        RunningServer(f"{url}/v9/").source()
    assert asked == ["/v9/props"]


def test_prompts_and_errors_of_the_server() -> None:
    def answer(path: str, body: bytes) -> tuple[int, Any]:
        if json.loads(body)["messages"]:
            return 200, {"prompt": "é\x00"}
        return 400, {"error": {"code": 400, "message": "no \x1b[2J", "type": "x"}}

    with answering(answer) as url:
        server = RunningServer(url)
        assert server.apply_template({"messages": [1]}) == Prompt(200, "é\x00", None)
        assert server.apply_template({"messages": []}) == Prompt(400, None, "no \\x1b[2J")


@pytest.mark.parametrize(
    ("status", "content", "said"),
    [
        (404, {"error": {"message": "File Not Found"}}, "404: File Not Found; is this a llama-server"),
        (503, {"error": {"message": "Loading model"}}, "wait until it has loaded"),
        (401, {"error": "key"}, "401: key; this server wants a key"),
        (500, b"<html>", "500: <html>"),
        (302, b"", "answers /props with 302"),
        (200, b"<html>", "something else than JSON"),
        (200, b"[" * 3_900, "something else than JSON"),
        (200, [], "something else than an object"),
        (200, {"chat_template": None}, "no chat_template"),
        (200, b" " * 5000, "more than 4,000 bytes"),
    ],
)
def test_answers_that_are_none(status: int, content: Any, said: str) -> None:
    with answering(lambda path, body: (status, content)) as url, pytest.raises(SourceError, match=said) as caught:
        RunningServer(url, answer_bytes=4000).source()
    assert caught.value.details["path"] == url


def drip(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n")
    for _ in range(100):
        client.sendall(b" ")
        time.sleep(0.1)


def drip_headers(client: socket.socket) -> None:
    client.sendall(b"HTTP/1.1 200 OK\r\nX-")
    for _ in range(100):
        client.sendall(b"x")
        time.sleep(0.1)


@pytest.mark.parametrize("speak", [drip, drip_headers, lambda client: time.sleep(2)])
def test_the_whole_answer_has_a_deadline(speak: Callable[[socket.socket], None]) -> None:
    with talking(speak) as url, pytest.raises(SourceError, match=r"within 0\.3 s"):
        RunningServer(url, seconds=0.3).source()


@pytest.mark.parametrize(
    "words", [b"", b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n{", b"\x00" * 99]
)
def test_a_server_that_speaks_otherwise(words: bytes) -> None:
    with talking(lambda client: client.sendall(words)) as url, pytest.raises(SourceError):
        RunningServer(url).source()


@pytest.mark.parametrize(
    "url",
    [
        *(
            "http://",
            "http://:80",
            "http://x:99999",
            "http://x:port",
            "http://user:word@x",
            "http://x/?y",
            "http://x/#y",
        ),
        *("http://x/\r\nHost: y", "http://[::1", "http://x y", "http://\x00", "http://ü.example"),
        *("http://a..b:80", f"http://{'a' * 64}", f"http://x.{'b' * 64}.example", f"http://{'a.' * 127}b", "http://.x"),
        *(
            "http://-x",
            "http://x-",
            "http://x_.-y",
            "http://*.x",
            "http://a%2eb",
            "http://x\\y",
            "http://@x",
            "http://:@x",
        ),
        *(
            "http://[::1%]",
            "http://[::g]",
            "http://[1.2.3.4]",
            "http://[v1.x]",
            "http://[]:80",
            "http://x:-1",
            "http://x:0",
        ),
        *(
            f"http://x:{'9' * 5_000}",
            "http://x:1١",
            "http://x/\x7f",
            "http://x/\t",
            "http://x/\u2028",
            "http://xn--\u00fc",
        ),
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(SourceError, match="no address"):
        open_source(url)


@pytest.mark.parametrize(
    "url", ["http://a-b.example_1.:8080/v1", "https://[::1]:1/x", "http://[fe80::1%25eth0]", "http://0x7f.1"]
)
def test_addresses_that_may_be_some(url: str) -> None:
    RunningServer(url)


@pytest.mark.parametrize(
    ("build", "number"),
    [
        ("b11434-1a2b3c", 11434),
        ("11434", 11434),
        ("b" + "9" * 900, None),
        ("b" + "9" * 9, 999_999_999),
        ("b1٣", 1),
        ("bx", None),
    ],
)
def test_numbers_of_builds(build: str, number: int | None) -> None:
    with answering(lambda path, body: (200, {"chat_template": "x", "build_info": build})) as url:
        assert RunningServer(url).build_number == number


LONG = "x" * 1_001


@pytest.mark.parametrize(
    ("props", "said"),
    [
        ({"build_info": "b" + "1" * 5_000}, "has a build_info of 5,001 characters"),
        ({"model_alias": LONG}, "has a model_alias of"),
        ({"bos_token": LONG}, "has a bos_token of"),
        ({"chat_template_caps": {str(n): True for n in range(101)}}, "chat_template_caps that is none"),
        ({"chat_template_caps": {LONG: True}}, "chat_template_caps that is none"),
        ({"x": [{}] * 100_001}, "it holds too much"),
        ({"x": [0] * 300_002}, "it holds too much"),
        ({"chat_template": "x" * 8_000_000}, "more than 8,000,000 bytes"),
    ],
)
def test_props_that_hold_too_much(props: dict[str, Any], said: str) -> None:
    def everything(url: str) -> object:
        server = RunningServer(url)
        return server.source(), server.caps

    with answering(lambda path, body: (200, PROPS | props)) as url, pytest.raises(SourceError, match=said):
        everything(url)


def test_a_template_of_many_marks_is_no_bulk() -> None:
    template = '{[,"' * 200_000
    with answering(lambda path, body: (200, {"chat_template": template})) as url:
        assert open_source(url).chosen["default"].text == template


OK = b"HTTP/1.1 200 OK\r\n"
CHUNKED = OK + b"Transfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a body": (OK + b"\r\n", b" " * 1_000, "more than 4,000 bytes"),
    "a body beside its length": (OK + b"Content-Length: 99999999999\r\n\r\n", b" " * 1_000, "more than 4,000 bytes"),
    "chunks": (CHUNKED, b"1\r\n \r\n", "more than"),
    "chunk extensions": (CHUNKED + b"1;", b"x" * 1_000, "as HTTP does"),
    "headers": (OK, b"X: y\r\n", "as HTTP does"),
    "one header": (OK + b"X: ", b"y" * 1_000, "as HTTP does"),
    "a status": (b"HTTP/1.1 200 ", b"O" * 1_000, "as HTTP does"),
    "continue": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", "as HTTP does"),
    "trailers": (CHUNKED + b"0\r\n", b"X: y\r\n", "JSON|as HTTP does"),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_answers_without_an_end(name: str) -> None:
    """They end by what was sent, long before the deadline."""
    start, piece, said = ENDLESS[name]
    sent = 0

    def speak(client: socket.socket) -> None:
        nonlocal sent
        client.sendall(start)
        while True:
            client.sendall(piece * 10)
            sent += len(piece) * 10

    with talking(speak) as url, pytest.raises(SourceError, match=said):
        RunningServer(url, answer_bytes=4_000).source()
    assert sent < 20_000_000, "what the system keeps on the way is sent too"


def test_many_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "PIECES", 50)
    data = CHUNKED + b"1\r\n \r\n" * 60 + b"0\r\n\r\n"
    with talking(lambda client: client.sendall(data)) as url, pytest.raises(SourceError, match="more than 50 pieces"):
        RunningServer(url).source()


@pytest.mark.parametrize(
    "words",
    [
        CHUNKED + b"f" * 40 + b"\r\n{}",
        CHUNKED + b"-1\r\n{}",
        CHUNKED + b"zz\r\n",
        CHUNKED + b"5\r\n{}",
        OK + b"Content-Length: -5\r\n\r\n{}",
        OK + b"Content-Length: " + b"9" * 5_000 + b"\r\n\r\n{}",
        OK + b"Content-Encoding: gzip\r\n\r\n" + gzip.compress(b" " * 50_000_000),
        OK + b"Content-Type: application/json; charset=utf-16\r\n\r\n" + '{"chat_template": "x"}'.encode("utf-16"),
        b"HTTP/1.1 " + b"9" * 5_000 + b" OK\r\n\r\n",
        b"HTTP/9.9 200 OK\r\n\r\n{}",
        b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n{}",
        b"HTTP/1.1 204 No Content\r\n\r\n{}",
        b"HTTP/1.1 301 Moved\r\nLocation: file:///proc/self/environ\r\n\r\n",
        OK + b"\r\n" + b'{"chat_template": ' + b"9" * 5_000 + b"}",
        OK + b"\r\n" + b"[" * 100_000,
        OK + b"\r\n\xff\xfe",
        OK + b": \x00\r\n\r\n{}",
    ],
)
def test_lies(words: bytes) -> None:
    with talking(lambda client: client.sendall(words)) as url, pytest.raises(SourceError) as caught:
        RunningServer(url, seconds=5).source()
    assert str(caught.value).isprintable()


PIECES_OF_ANSWERS = st.sampled_from(
    [
        *(b"HTTP/1.1 200 OK\r\n", b"HTTP/1.0 500 x\r\n", b"HTTP/1.1 100 Continue\r\n", b"\r\n", b"\n", b"\r\n\r\n"),
        *(
            b"Content-Length: 20\r\n",
            b"Content-Length: x\r\n",
            b"Transfer-Encoding: chunked\r\n",
            b"Connection: close\r\n",
        ),
        *(
            b"5\r\n",
            b"0\r\n",
            b"fffffffffffffffffffff\r\n",
            b'{"chat_template": "x"}',
            b"{",
            b"}",
            b"\x00",
            b"\xff",
            b"NaN",
            b"[",
            b"1e999",
        ),
        *(b'{"chat_template": "x", "chat_template_caps": [], "build_info": 5}', b'"\\ud800"'),
    ]
)


@given(st.lists(PIECES_OF_ANSWERS | st.binary(max_size=8), max_size=12))
@settings(max_examples=150, deadline=None)
def test_whatever_a_server_answers(pieces: list[bytes]) -> None:
    with talking(lambda client: client.sendall(b"".join(pieces))) as url:
        try:
            server = RunningServer(url, seconds=5)
            server.source()
            assert server.build_number is None
            assert server.caps in (None, {})
        except SourceError as error:
            checked(error)


def test_a_connection_that_nobody_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "CONNECT_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as waiting:
        for _ in range(4):
            sock = waiting.enter_context(socket.socket())
            sock.setblocking(False)
            sock.connect_ex(full.getsockname())
        with pytest.raises(SourceError, match=r"no connection within 0\.2 s"):
            open_source(f"http://127.0.0.1:{full.getsockname()[1]}")


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    with pytest.raises(SourceError, match="cannot be asked"):
        open_source(f"http://127.0.0.1:{port}")
