"""A running llama-server as a source: its template and tokens from `/props`, its prompts from `/apply-template`.

    server = RunningServer("http://localhost:8080")
    server.source().template()                     # what it was started with
    server.apply_template({"messages": [...]})     # Prompt(status=200, text="...", error=None)

A server is a stranger too: answers are bounded in size and in time, redirects are not followed, and nothing is sent
that was not asked for. Endpoints as build b11434 has them (tools/server).
"""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import socket
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import SplitResult, urlsplit

from jinjarun.errors import SourceError, quote
from jinjarun.sources.files import failure
from jinjarun.sources.source import DEFAULT, TOOL_USE, Candidate, Source
from jinjarun.sources.tokens import Token, TokenData

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 30.0
"""How long one answer may take in all."""
CONNECT_SECONDS = 5.0
ANSWER_BYTES = 32_000_000
READER = "llama.cpp server"
_BUILD = re.compile(r"b?(\d+)")


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
        return _text(self.props.get("build_info"))

    @property
    def build_number(self) -> int | None:
        """The number in the build: llama.cpp's releases are b1, b2, ..."""
        found = _BUILD.match(self.build)
        return int(found[1]) if found else None

    @property
    def caps(self) -> dict[str, bool] | None:
        """`chat_template_caps`, None where it gives none."""
        caps = self.props.get("chat_template_caps")
        return {str(key): bool(value) for key, value in caps.items()} if isinstance(caps, dict) else None

    def source(self, name: str | None = None) -> Source:
        """Its templates and tokens, as from any other place."""
        found = [Candidate(DEFAULT, _text(self.props["chat_template"]), "server", self.url, "chat_template")]
        if tool_use := _text(self.props.get("chat_template_tool_use")):
            found.append(Candidate(TOOL_USE, tool_use, "server", self.url, "chat_template_tool_use"))
        tokens = {which: _text(self.props.get(f"{which}_token")) for which in ("bos", "eos")}
        return Source(
            kind="server",
            path=self.url,
            name=name or _text(self.props.get("model_alias")) or self.url,
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
        """Status and JSON of an answer. The deadline counts from the start, however slowly the server drips."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Accept": "application/json"} | ({} if data is None else {"Content-Type": "application/json"})
        kind = http.client.HTTPSConnection if self._address.scheme == "https" else http.client.HTTPConnection
        connection = kind(self._address.hostname or "", self._address.port, timeout=CONNECT_SECONDS)
        try:
            connection.connect()
            with _deadline(connection, self._seconds) as late:
                try:
                    connection.request(method, self._address.path + path, data, headers)
                    with connection.getresponse() as response:
                        text = response.read(self._answer_bytes + 1)
                except (OSError, http.client.HTTPException):
                    if late.is_set():
                        raise self._failure(f"gave no answer within {self._seconds:g} s") from None
                    raise
            if late.is_set():
                raise self._failure(f"gave no whole answer within {self._seconds:g} s")
        except http.client.HTTPException as error:
            raise self._failure(f"does not answer as HTTP does ({type(error).__name__})") from None
        except OSError as error:
            reason = (error.strerror or str(error) or type(error).__name__).lower()
            raise self._failure(f"cannot be asked: {reason}") from None
        finally:
            connection.close()
        if len(text) > self._answer_bytes:
            raise self._failure(f"answers with more than {self._answer_bytes:,} bytes")
        try:
            return response.status, json.loads(text)
        except (ValueError, RecursionError):
            if response.status != 200:
                return response.status, text.decode("utf-8", "replace")
            raise self._failure(f"answers {path} with something else than JSON") from None

    def _failure(self, reason: str, hint: str | None = None) -> SourceError:
        return failure(self.url, reason, hint=hint)


@contextlib.contextmanager
def _deadline(connection: http.client.HTTPConnection, seconds: float) -> Iterator[threading.Event]:
    """Ends the connection after `seconds`; the event tells whether that came to pass."""
    late = threading.Event()
    sock = connection.sock
    sock.settimeout(None)  # from here on it is the timer that ends waiting

    def end() -> None:
        late.set()
        with contextlib.suppress(OSError):
            sock.shutdown(socket.SHUT_RDWR)

    timer = threading.Timer(seconds, end)
    timer.daemon = True
    timer.start()
    try:
        yield late
    finally:
        timer.cancel()


def _address(url: str) -> SplitResult:
    try:
        address = urlsplit(url)
        if not address.hostname or address.port == 0:
            raise ValueError("it names no server")
        if address.username is not None or address.query or address.fragment:
            raise ValueError("give the address alone, without a user, a query or a fragment")
        if not url.isascii() or not url.isprintable() or " " in url:
            raise ValueError("it has characters that no address has")
    except ValueError as error:
        raise failure(url, f"is no address of a server: {error}", hint="such as http://localhost:8080") from None
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
