"""A running server as a source: what it says is taken, and whatever it does is a SourceError in bounded time."""

from __future__ import annotations

import contextlib
import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from jinjarun.errors import SourceError
from jinjarun.sources import open_source
from jinjarun.sources.server import Prompt, RunningServer

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
    ],
)
def test_addresses_that_are_none(url: str) -> None:
    with pytest.raises(SourceError, match="no address"):
        open_source(url)


def test_nobody_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as bound:
        port = bound.getsockname()[1]
    with pytest.raises(SourceError, match="cannot be asked"):
        open_source(f"http://127.0.0.1:{port}")
