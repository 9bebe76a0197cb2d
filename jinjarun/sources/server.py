"""A running llama-server as a source: its template and tokens from `/props`, its prompts from `/apply-template`.

    server = RunningServer("http://localhost:8080")
    server.source().template()                     # what it was started with
    server.apply_template({"messages": [...]})     # Prompt(status=200, text="...", error=None)

A server is a stranger too: answers are bounded in size and in time, redirects are not followed, and nothing is sent
that was not asked for. Endpoints as build b11434 has them (tools/server).
"""

from __future__ import annotations

import http.client
import io
import ipaddress
import json
import re
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Any
from urllib.parse import SplitResult, urlsplit

from jinjarun.errors import QUOTE_LIMIT, SourceError, quote
from jinjarun.sources.files import failure
from jinjarun.sources.json_data import CONFIG, load_json
from jinjarun.sources.source import DEFAULT, TOOL_USE, Candidate, Source
from jinjarun.sources.tokens import Token, TokenData

SECONDS = 30.0
"""How long one answer may take in all."""
CONNECT_SECONDS = 5.0
ANSWER_BYTES = 8_000_000
"""The largest answer. `/props` has some 100,000 bytes, most of them template; a prompt as many as its request."""
READER = "llama.cpp server"
HEADER_BYTES = 256_000
"""The most bytes before the body, and around its pieces."""
PIECES = 20_000
"""The most pieces of a body: chunks, or what one packet brought."""
TEXT_CHARACTERS = 1_000
"""The longest name, build or token in `/props`."""
CAPS = 100
"""The most flags in `chat_template_caps`; b11434 has nine."""
ADDRESSES = 4
HOST_CHARACTERS = 253

_PIECE_BYTES = 1 << 16
_BUILD = re.compile(r"b?([0-9]{1,9})(?![0-9])")
_HOST = re.compile(r"(?:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)*[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.?")


@dataclass(frozen=True, slots=True)
class Prompt:
    """An answer of `/apply-template`: `text` with status 200, otherwise the server's own words in `error`."""

    status: int
    text: str | None
    error: str | None


class RunningServer:
    """A llama-server at a URL, which may have a path before the endpoints (`--api-prefix`).

    Raises SourceError where the URL is none, and from its methods where the server gives no usable answer.
    """

    def __init__(self, url: str, *, seconds: float = SECONDS, answer_bytes: int = ANSWER_BYTES) -> None:
        self.url = url.rstrip("/")
        self._seconds, self._answer_bytes = seconds, answer_bytes
        self._address = _address(self.url)
        self._props: dict[str, Any] | None = None

    @property
    def props(self) -> dict[str, Any]:
        """The object of `/props`, asked for once."""
        if self._props is None:
            status, answer = self._ask("GET", "/props")
            if status != 200:
                raise self._failure(f"answers /props with {status}: {_message(answer)}", _hint(status))
            if not isinstance(answer, dict):
                raise self._failure("answers /props with something else than an object")
            if not isinstance(answer.get("chat_template"), str):
                raise self._failure(
                    "has no chat_template in its /props", "a llama-server has one; is this another one?"
                )
            self._props = answer
        return self._props

    @property
    def build(self) -> str:
        """The build that it says it is, such as "b11434-1a2b3c"; empty where it does not tell."""
        return self._short("build_info")

    @property
    def build_number(self) -> int | None:
        """The number in the build: llama.cpp's releases are b1, b2, ..."""
        found = _BUILD.match(self.build)
        return int(found[1]) if found else None

    @property
    def caps(self) -> dict[str, bool] | None:
        """`chat_template_caps`, None where it gives none."""
        caps = self.props.get("chat_template_caps")
        if not isinstance(caps, dict):
            return None
        if len(caps) > CAPS or any(len(name) > TEXT_CHARACTERS for name in caps):
            raise self._failure("has a chat_template_caps that is none")
        return {name: bool(value) for name, value in caps.items()}

    def source(self, name: str | None = None) -> Source:
        """Its templates and tokens, as from any other place."""
        found = [Candidate(DEFAULT, _text(self.props["chat_template"]), "server", self.url, "chat_template")]
        if tool_use := _text(self.props.get("chat_template_tool_use")):
            found.append(Candidate(TOOL_USE, tool_use, "server", self.url, "chat_template_tool_use"))
        tokens = {which: self._short(f"{which}_token") for which in ("bos", "eos")}
        return Source(
            kind="server",
            path=self.url,
            name=name or self._short("model_alias") or self.url,
            reader=READER,
            form="string",
            chosen={one.name: one for one in found},
            candidates=tuple(found),
            tokens=TokenData(special={which: Token(text) for which, text in tokens.items() if text}),
            revision=self.build or None,
        )

    def apply_template(self, body: Any) -> Prompt:
        """What `POST /apply-template` answers. An error of the server is an answer."""
        status, answer = self._ask("POST", "/apply-template", body)
        prompt = answer.get("prompt") if isinstance(answer, dict) else None
        if status == 200 and isinstance(prompt, str):
            return Prompt(status, prompt, None)
        if status == 200:
            raise self._failure("answers /apply-template without a prompt")
        return Prompt(status, None, _message(answer))

    def _ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": "application/json"})
        try:
            with _Exchange(self._address, self._seconds) as exchange:
                exchange.connection.request(method, self._address.path + path, data, headers)
                with exchange.connection.getresponse() as response:
                    exchange.room = self._answer_bytes + HEADER_BYTES
                    text = self._body(response)
        except TimeoutError:
            raise self._failure(f"gave no whole answer within {self._seconds:g} s") from None
        except (http.client.HTTPException, OverflowError) as error:
            raise self._failure(f"does not answer as HTTP does ({type(error).__name__})") from None
        except OSError as error:
            reason = (error.strerror or str(error) or type(error).__name__).lower()
            raise self._failure(f"cannot be asked: {quote(reason)}") from None
        try:
            return response.status, load_json(self.url, text.decode(), CONFIG, constants=True)[0]
        except (UnicodeDecodeError, SourceError) as error:
            if response.status != 200:
                return response.status, text[:QUOTE_LIMIT].decode("utf-8", "replace")
            why = error.details["reason"] if isinstance(error, SourceError) else "is not UTF-8"
            raise self._failure(f"answers {path} with something else than JSON that can be read: it {why}") from None

    def _body(self, response: http.client.HTTPResponse) -> bytes:
        """The body as it is sent: a compressed one, which nobody asked for, is not unpacked."""
        pieces: list[bytes] = []
        size = 0
        while piece := response.read1(_PIECE_BYTES):
            pieces.append(piece)
            size += len(piece)
            if size > self._answer_bytes:
                raise self._failure(f"answers with more than {self._answer_bytes:,} bytes")
            if len(pieces) > PIECES:
                raise self._failure(f"answers in more than {PIECES:,} pieces")
        return b"".join(pieces)

    def _short(self, key: str) -> str:
        """A text of `/props` that is no template; empty where there is none."""
        text = _text(self.props.get(key))
        if len(text) > TEXT_CHARACTERS:
            raise self._failure(f"has a {key} of {len(text):,} characters in its /props")
        return text

    def _failure(self, reason: str, hint: str | None = None) -> SourceError:
        return failure(self.url, reason, hint=hint)


class _Exchange:
    """The socket of one request and its answer, which together have a deadline and a number of bytes.

    It stands between the system's socket and `http.client`, which would wait as long and read as much as the server
    likes: each step has the time that is left, and what goes beyond `room` is an error.
    """

    def __init__(self, address: SplitResult, seconds: float) -> None:
        self.room = HEADER_BYTES
        self._seconds = seconds
        self._end = time.monotonic() + seconds
        host, secure = address.hostname or "", address.scheme == "https"
        self.connection = (http.client.HTTPSConnection if secure else http.client.HTTPConnection)(host, address.port)
        self._socket = self._connected(host, self.connection.port)
        try:
            if secure:
                self._socket.settimeout(self._left())
                self._socket = ssl.create_default_context().wrap_socket(self._socket, server_hostname=host)
        except BaseException:
            self._socket.close()
            raise
        self.connection.sock = self

    def __enter__(self) -> _Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def sendall(self, data: Any) -> None:
        self._socket.settimeout(self._left())
        self._socket.sendall(data)

    def receive(self, buffer: Any) -> int:
        if self.room <= 0:
            raise http.client.HTTPException
        self._socket.settimeout(self._left())
        count = self._socket.recv_into(buffer, min(len(buffer), self.room))
        self.room -= count
        return count

    def makefile(self, mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Received(self))

    def close(self) -> None:
        """`http.client` closes as soon as it knows the end of an answer, which is still to be read."""

    def _connected(self, host: str, port: int) -> socket.socket:
        """The first of a few addresses that takes the connection."""
        error: OSError = OSError("it has no address")
        for family, kind, protocol, _, address in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[:ADDRESSES]:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(min(CONNECT_SECONDS, self._left()))
                sock.connect(address)
                return sock
            except TimeoutError:
                sock.close()
                error = OSError(f"it takes no connection within {min(CONNECT_SECONDS, self._seconds):g} s")
            except OSError as failed:
                sock.close()
                error = failed
        raise error

    def _left(self) -> float:
        left = self._end - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left


class _Received(io.RawIOBase):
    """What an exchange receives, as a stream."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._exchange.receive(buffer)


def _address(url: str) -> SplitResult:
    try:
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("it has characters that no address has (write international names as xn--...)")
        address = urlsplit(url)
        if not address.hostname or address.port == 0:
            raise ValueError("it names no server")
        if "@" in address.netloc or address.query or address.fragment:
            raise ValueError("give the address alone, without a user, a query or a fragment")
        if "[" in address.netloc:
            ipaddress.IPv6Address(address.hostname)
        elif len(address.hostname) > HOST_CHARACTERS or not _HOST.fullmatch(address.hostname):
            raise ValueError("a name is made of letters, digits and hyphens, at most 63 between its dots")
    except ValueError as error:
        reason = f"is no address of a server: {quote(str(error))}"
        raise failure(url, reason, hint="such as http://localhost:8080") from None
    return address


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _message(answer: Any) -> str:
    """The message in an error of llama-server, or what stands there instead."""
    error = answer.get("error") if isinstance(answer, dict) else None
    message = error.get("message") if isinstance(error, dict) else error if error is not None else answer
    return quote(message if isinstance(message, str) else json.dumps(message))


def _hint(status: int) -> str | None:
    return {
        401: "this server wants a key, and none is sent",
        404: "is this a llama-server, and is the path before /props right?",
        503: "wait until it has loaded its model",
    }.get(status)
