"""`jinjarun serve` among strangers: pages of other servers, clients that say nothing, leave, or ask too much.

Clients are real sockets of this machine. Where they have to be several, they come from several of its addresses.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import resource
import socket
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from probes.rendering.paths import Setting
from probes.serve import app, connections
from probes.serve.connections import CONNECTIONS, CONNECTIONS_EACH
from probes.serve.shares import Share, Turns, client_of
from tests.probes.running import Running, running

QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}]}
LONG = {"template": "{% for i in range(99999) %}{% for j in range(99999) %}{{ i * j }}{% endfor %}{% endfor %}"}
"""A report on this takes longer than a call may: every render of it runs into a limit."""
WAIT_SECONDS = 50
ANSWER_BYTES = 3_900_000
"""More than the buffers of both sockets take."""


@pytest.fixture(scope="module")
def there() -> Iterator[Running]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    try:
        with running(Setting({"default": "{{ messages[0].content }}"}), hosts=["my.example"]) as found:
            yield found
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def until(true: Callable[[], object]) -> None:
    end = time.monotonic() + WAIT_SECONDS
    while not true():
        assert time.monotonic() < end, "it does not come to be"
        time.sleep(0.02)


def serves(there: Running) -> bool:
    reply = there.post("/apply-template", QUESTION)
    return (reply.status, reply.json) == (200, {"prompt": "Hi"})


def others(there: Running) -> Running:
    """The same server for clients of another address."""
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.2", 0))
        except OSError:
            pytest.skip("this machine has one address")
    return replace(there, source="127.0.0.2")


@contextlib.contextmanager
def clients(there: Running, count: int, sent: bytes, sources: int = 1) -> Iterator[list[socket.socket]]:
    """Connections that say so much and wait."""
    with contextlib.ExitStack() as opened:
        found = []
        for number in range(count):
            source = f"127.0.0.{3 + number % sources}" if sources > 1 else there.source
            client = opened.enter_context(socket.create_connection((there.host, there.port), 30, (source, 0)))
            with contextlib.suppress(OSError):  # ended already, to make room
                client.sendall(sent)
            found.append(client)
        yield found


def head(path: str, length: int) -> bytes:
    return (
        f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


def request(path: str, body: Any) -> bytes:
    data = json.dumps(body).encode()
    return head(path, len(data)) + data


# Pages of other servers


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:1", "127.0.0.1", "[::1]:8080", "my.example", "My.Example:80"])
def test_names_of_the_server(there: Running, host: str) -> None:
    assert there.ask("GET", "/props", Host=host).status == 200
    assert there.ask("POST", "/apply-template", QUESTION, Host=host, Origin=f"http://{host}").status == 200
    assert there.ask("GET", "/", Host=host, Origin=f"https://{host}").status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "xmy.example", "localhost.", "10.0.0.1"),
        *("localhost:80@evil.example", "localhost:", "localhost:x", "[::1", "::1", "[evil.example]", "127.0.0.2", " "),
    ],
)
def test_another_name_is_refused(there: Running, host: str) -> None:
    for asked in ("GET /", "GET /props", "GET /health", "POST /apply-template", "POST /probe", "GET /nothing"):
        method, path = asked.split()
        refused(there.ask(method, path, QUESTION if method == "POST" else None, Host=host), 403, "permission_error")


def test_the_address_that_a_client_came_to_is_a_name(there: Running) -> None:
    """As with --host 0.0.0.0, where the address depends on the way that the client takes."""
    with app.listen("0.0.0.0", 0) as bound:
        assert bound.getsockname()[0] == "0.0.0.0"
    assert there.server is not None
    scope: dict[str, Any] = {"type": "http", "method": "GET", "server": ("10.1.2.3", 80)}
    for host, fine in (("10.1.2.3:80", True), ("10.1.2.4", False)):
        found = there.server._refused({**scope, "headers": [(b"host", host.encode())]})
        assert (found is None) is fine


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "http://evil.example",
        "http://localhost:1",
        "http://127.0.0.1",
        "http://localhost.evil.example",
        "x",
        "http://[",
    ],
)
def test_a_page_of_another_server_is_refused(there: Running, origin: str) -> None:
    host = f"localhost:{there.port}"
    for method, path, body in (("POST", "/apply-template", QUESTION), ("GET", "/props", None), ("POST", "/probe", {})):
        refused(there.ask(method, path, body, Host=host, Origin=origin), 403, "permission_error")
    assert there.ask("POST", "/apply-template", QUESTION, Host=host, Origin=f"http://{host}").status == 200


@pytest.mark.parametrize(
    "kind", ["", "text/plain", "application/x-www-form-urlencoded", "text/json", "application/jsonx"]
)
def test_what_is_not_called_json_is_refused(there: Running, kind: str) -> None:
    for path in ("/apply-template", "/probe", "/explain", "/v1/chat/completions", "/nothing"):
        refused(there.ask("POST", path, QUESTION, Content_Type=kind), 415, "invalid_request_error")


def test_json_may_have_parameters(there: Running) -> None:
    for kind in ("application/json; charset=utf-8", "Application/JSON", "application/json;x=y"):
        assert there.ask("POST", "/apply-template", QUESTION, Content_Type=kind).status == 200


def refused(reply: Any, status: int, kind: str) -> None:
    assert reply.status == status, reply
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    assert (reply.json["error"]["code"], reply.json["error"]["type"]) == (status, kind)
    assert reply.headers["connection"] == "close"
    assert not any(name.startswith("access-control") for name in reply.headers)


@pytest.mark.parametrize(
    "sent",
    [
        b"nonsense\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
def test_what_is_no_http_gets_an_error_of_llama_server(there: Running, sent: bytes) -> None:
    with clients(there, 1, sent) as (client,):
        refused_raw(client)
    assert serves(there)


def test_a_head_that_is_too_long(there: Running) -> None:
    with clients(there, 1, b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"x" * 100_000) as (client,):
        refused_raw(client)
    assert serves(there)


def refused_raw(client: socket.socket) -> None:
    answer = b""
    with contextlib.suppress(ConnectionError):
        while data := client.recv(10_000):
            answer += data
    first, _, body = answer.partition(b"\r\n\r\n")
    assert first.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


# Clients that say nothing


@pytest.mark.parametrize(
    "sent",
    [
        b"",
        b"GET /props HTT",
        b"POST /apply-template HTTP/1.1\r\nHost: localhost\r\nX",
        head("/apply-template", 9) + b"{",
    ],
    ids=["nothing", "half a line", "half a head", "half a body"],
)
@pytest.mark.parametrize("sources", [1, 40], ids=["one", "many"])
def test_clients_that_wait_keep_nobody_out(there: Running, sent: bytes, sources: int) -> None:
    if sources > 1:
        others(there)
    with clients(there, 700, sent, sources):
        assert serves(there)
        assert serves(there)
    assert serves(there)


def test_the_one_that_waited_longest_makes_room(there: Running) -> None:
    with clients(there, CONNECTIONS_EACH, b"") as found, socket.create_connection((there.host, there.port)) as late:
        assert found[0].recv(1) == b""
        late.sendall(request("/apply-template", QUESTION))
        assert late.recv(15) == b"HTTP/1.1 200 OK"
        for client in found[1:]:
            client.setblocking(False)
            with pytest.raises(BlockingIOError):
                client.recv(1)
    assert CONNECTIONS_EACH < CONNECTIONS


@pytest.mark.parametrize("sent", [b"", b"GET /pro", head("/nothing", 10) + b"x" * 5])
def test_a_client_that_does_not_go_on_is_left(there: Running, sent: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    with clients(there, 1, sent) as (client,):
        ended(client)


def test_a_client_that_sends_a_byte_from_time_to_time_is_left(there: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after an answer, where uvicorn alone would wait for ever."""
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.5)
    with clients(there, 1, b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n") as (client,):
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        client.settimeout(0.1)

        def left() -> bool:
            try:
                client.sendall(b"G")
                return not client.recv(10_000) and True
            except TimeoutError:
                return False
            except ConnectionError:
                return True

        until(left)


def test_a_client_that_takes_no_answer_is_left(there: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.3)
    assert there.server is not None
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((there.host, there.port))
        client.sendall(request("/apply-template", {"messages": [{"role": "user", "content": "x" * ANSWER_BYTES}]}))
        assert client.recv(15) == b"HTTP/1.1 200 OK"
        time.sleep(1)
        ended(client)


def ended(client: socket.socket) -> None:
    """The server has ended the connection: with a reset, or after what it had sent."""
    client.settimeout(WAIT_SECONDS)
    taken = 0
    with contextlib.suppress(ConnectionError):
        while data := client.recv(100_000):
            taken += len(data)
    assert taken < ANSWER_BYTES


def test_a_slow_body_gets_408(there: Running, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "BODY_SECONDS", 0.2)
    with clients(there, 20, head("/apply-template", 100) + b"{") as found:
        for client in found:
            assert client.recv(12) == b"HTTP/1.1 408"


def test_what_is_held_of_bodies_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "HELD_BYTES", 800_000)
    with running(Setting({"default": "{{ messages[0].content }}"})) as there:
        with clients(there, 4, head("/apply-template", 150_000) + b"x" * 140_000) as found:
            answers = []
            for client in found:
                client.settimeout(1)
                with contextlib.suppress(TimeoutError):
                    answers.append(client.recv(12))
            assert answers
            assert set(answers) == {b"HTTP/1.1 503"}
            assert serves(there), "a small body needs no room"
            large = {"messages": [{"role": "user", "content": "x" * 150_000}]}
            assert others(there).post("/apply-template", large).status == 200
        until(lambda: there.post("/apply-template", large).status == 200)


# Clients that leave


def test_work_of_clients_that_left_ends(there: Running) -> None:
    """Twelve reports that nobody waits for; each would take both workers' time to the limit."""
    assert there.server is not None
    with clients(there, 12, request("/probe", LONG)):
        until(lambda: there.server is not None and there.server._under_way._all == 12)
        assert serves(others(there)), "while they wait"
    until(lambda: there.server is not None and there.server._under_way._all == 0)
    assert serves(there)


def test_a_client_that_leaves_before_its_turn(there: Running) -> None:
    with (
        clients(there, 1, request("/probe", LONG)) as (first,),
        clients(there, 1, request("/probe", LONG)) as (second,),
    ):
        assert there.server is not None
        until(lambda: there.server is not None and there.server._under_way._all == 2)
        second.close()
        until(lambda: there.server is not None and there.server._under_way._all == 1)
        first.close()
    assert serves(there)


# Clients that ask too much


def test_a_client_has_its_share_and_others_theirs(there: Running) -> None:
    """As many requests as one client may have under way, and more: the others are refused, and somebody else is not."""
    each = app.UNDER_WAY // 2
    with clients(there, each, request("/probe", LONG)), ThreadPoolExecutor(1):
        assert there.server is not None
        until(lambda: there.server is not None and there.server._under_way._all == each)
        reply = there.post("/apply-template", QUESTION)
        assert (reply.status, reply.json["error"]["type"]) == (503, "unavailable_error")
        assert reply.headers["retry-after"] == "1"
        assert there.ask("GET", "/health").status == 200
        other = others(there)
        for _ in range(5):
            assert serves(other)
        assert there.server._under_way._all == each, "those of the first client go on"


def test_turns() -> None:
    """Two workers, and a client that asks for ten: others have one at once, and each has its turn before a second."""

    async def ask(turns: Turns, name: str, done: asyncio.Event, log: list[str]) -> None:
        async with turns.turn(name):
            log.append(name)
            await done.wait()

    async def run() -> list[str]:
        turns, log, done = Turns(2), [], asyncio.Event()
        many = [asyncio.create_task(ask(turns, "many", done, log)) for _ in range(10)]
        await asyncio.sleep(0)
        assert log == ["many"]
        one = [asyncio.create_task(ask(turns, name, done, log)) for name in ("a", "b", "c")]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log == ["many", "a"]
        many[3].cancel()
        one[1].cancel()
        done.set()
        await asyncio.gather(*many, *one, return_exceptions=True)
        async with turns.turn("many"), turns.turn("d"):
            log.append("both are free again")
        return log

    log = asyncio.run(run())
    assert log[:3] in (["many", "a", "c"], ["many", "a", "many"])
    assert log.index("c") <= 3
    assert (log.count("many"), log.count("b"), log[-1]) == (9, 0, "both are free again")


def test_a_share() -> None:
    share = Share(10, 6)
    assert share.take("a", 6)
    assert not share.take("a", 1)
    assert not share.take("b", 5)
    assert share.take("b", 4)
    assert not share.take("c", 1)
    share.give_back("a", 2)
    assert share.take("c", 2)
    share.give_back("c", 2)
    assert "c" not in share._held


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("127.0.0.1", "127.0.0.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ("::ffff:10.0.0.1", "10.0.0.1"),
        ("fe80::1%eth0", "fe80::"),
        ("", ""),
    ],
)
def test_who_is_behind_an_address(address: str, client: str) -> None:
    assert client_of(address) == client
