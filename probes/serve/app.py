"""`jinjarun serve`: llama-server's endpoints for a template, without weights, and one page to look at it.

    GET  /                 the page (`page/index.html`, which asks nobody but this server)
    GET  /health           {"status": "ok"}
    GET  /props            the template, its caps, the tokens, the build that is answered for
    GET  /v1/models        one model, for clients that look for one
    POST /apply-template   the prompt of a request
    POST /probe            the report on a template: {"template": text}, or {} for the server's own
    POST /explain          a prompt on any path with origins and reworks, and the next one: what the page shows

Statuses and error bodies are llama-server's (tools/server of build b11434): {"error": {"code", "message", "type"}}.
Every template runs in a worker process that can be killed (`isolation`), and is when its client goes away. What a
client can take is bounded, so that others are served: its connections (`connections`), the size of a body, the time to
send it and what of bodies is held, its requests under way (503 beyond), the workers that work for it at a time
(`shares`), and what `isolation` and `Limits` bound.

A browser asks on behalf of any page that it shows. So a request must name this server as its Host (a name that somebody
made point here is another one), come from a page of this server if it comes from a page (Origin), and bring JSON as
JSON, which a page of another server cannot send without being refused.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import re
import socket
from importlib import resources
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, SourceError, WorkerError
from jinjarun.isolation import IsolatedExecutor
from probes.chats.named import CHATS
from probes.rendering.renders import PATHS
from probes.serve import worker as served
from probes.serve.shares import Share, Turns, client_of

try:
    import uvicorn
    from starlette.applications import Starlette
    from starlette.datastructures import Headers
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect, Request
    from starlette.responses import HTMLResponse, Response
    from starlette.routing import Route

    from probes.serve.connections import CONNECTIONS, Connection
except ImportError:
    raise SourceError(
        "jinjarun serve needs starlette and uvicorn; install them: pip install 'jinjarun[server]'", path="probes.server"
    ) from None

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine
    from concurrent.futures import Executor

    from starlette.types import Receive, Scope, Send

    from probes.rendering.paths import Setting

BODY_BYTES = 4_000_000
BODY_SECONDS = 20.0
"""How long a client may take to send a body."""

HELD_BYTES = 64_000_000
SMALL_BYTES = 50_000
"""What is held of bodies at a time, which one client may have a quarter of; small bodies are not counted."""

UNDER_WAY = 32
"""Requests that may wait for a worker or be worked on at the same time, half of them one client's."""

HEAD_BYTES = 16_384
"""The longest head of a request."""

HOSTS = ("localhost", "127.0.0.1", "::1")
"""Names of this machine for itself."""

WORKERS = 2
WORK_SECONDS = 20.0
WORK_CPU_SECONDS = 10
WORKER_BYTES = 300_000_000

SPENT = ("timeout", "cpu", "memory")
"""Why a worker was killed that a template has to answer for: sending it again, as after a 503, would not help."""

TYPES = {
    400: "invalid_request_error",
    403: "permission_error",
    404: "not_found_error",
    408: "invalid_request_error",
    413: "invalid_request_error",
    415: "invalid_request_error",
    501: "not_supported_error",
    503: "unavailable_error",
}
"""HTTP status -> llama-server's `type`; every other one is "server_error". For 408, 413 and 415 it has no body."""

UNREAD = (403, 408, 413, 415)
"""Statuses of requests whose body nobody reads: the connection ends, so that nobody has to wait for it."""

NEEDS_WEIGHTS = (
    *("/completion", "/completions", "/chat/completions", "/responses", "/embedding", "/embeddings", "/infill"),
    *("/v1/completions", "/v1/chat/completions", "/v1/responses", "/v1/embeddings", "/v1/messages", "/tokenize"),
    *("/detokenize", "/rerank", "/v1/rerank"),
)
"""Endpoints of llama-server that need a model."""


class Refusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


class TemplateServer:
    """The application: `app` is ASGI. Close it with `close`, which ends the workers.

    `hosts` are more names that requests may call it by. Starting renders the template, and raises JinjarunError where
    llama-server would not start with it.
    """

    def __init__(
        self,
        setting: Setting,
        *,
        name: str = "template",
        hosts: Collection[str] = (),
        executor: Executor | None = None,
        under_way: int = UNDER_WAY,
        body_bytes: int = BODY_BYTES,
    ) -> None:
        self.body_bytes = body_bytes
        self._name = name
        self._hosts = {host.lower() for host in (*HOSTS, *hosts)}
        self._under_way = Share(under_way, max(1, under_way // 2))
        self._held = Share(HELD_BYTES, HELD_BYTES // 4)
        self._turns = Turns(WORKERS)
        self._setting = served.to_json(setting)
        self._executor = executor or IsolatedExecutor(
            WORKERS,
            timeout_seconds=WORK_SECONDS,
            cpu_seconds=WORK_CPU_SECONDS,
            memory_bytes=WORKER_BYTES,
            initializer=served.warm,
        )
        try:
            self.props = self._executor.submit(served.start, self._setting).result() | {"model_alias": name}
            self._executor.submit(served.warm)  # another worker starts, so that no client waits for it
        except BaseException:
            self.close()
            raise
        self._page, self._page_headers = page(self._setting, self.props)
        self._routes = Starlette(
            routes=[
                Route("/", self._index),
                Route("/health", self._health),
                Route("/v1/health", self._health),
                Route("/props", self._props),
                Route("/models", self._models),
                Route("/v1/models", self._models),
                Route("/apply-template", self._work(served.apply_template), methods=["POST"]),
                Route("/probe", self._work(served.probe_template), methods=["POST"]),
                Route("/explain", self._work(served.explain), methods=["POST"]),
                *(Route(path, self._needs_weights, methods=["POST"]) for path in NEEDS_WEIGHTS),
            ],
            exception_handlers={
                HTTPException: _http_error,
                Refusal: _refusal,
                JinjarunError: _jinjarun_error,
                ClientDisconnect: _gone,
            },
        )

    async def app(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refused(scope)
        await (self._routes if refusal is None else refusal)(scope, receive, send)

    def _refused(self, scope: Scope) -> Response | None:
        """The answer to a request that may have been made for a page of somebody else, or holds no JSON."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        name = host_name(host)
        if name not in self._hosts and name != scope["server"][0]:
            return error_reply(403, "The Host of the request is no name of this server; see --allow-host")
        if any(origin.partition("://")[2].lower() != host.lower() for origin in headers.getlist("origin")):
            return error_reply(403, "The Origin of the request is a page of another server")
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if scope["method"] == "POST" and kind != "application/json":
            return error_reply(415, "The Content-Type of the request must be application/json")
        return None

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)

    async def _index(self, _: Request) -> Response:
        return HTMLResponse(self._page, headers=self._page_headers)

    async def _health(self, _: Request) -> Response:
        return reply({"status": "ok"})

    async def _props(self, _: Request) -> Response:
        return reply(self.props)

    async def _models(self, _: Request) -> Response:
        model = {"id": self._name, "object": "model", "created": 0, "owned_by": "jinjarun"}
        return reply({"object": "list", "data": [model]})

    async def _needs_weights(self, _: Request) -> Response:
        raise Refusal(501, "This server has no model: it renders templates. Ask /apply-template for the prompt")

    def _work(
        self, function: Callable[[dict[str, Any], str], dict[str, Any]]
    ) -> Callable[[Request], Awaitable[Response]]:
        """The endpoint whose answer a worker makes of the body."""

        async def endpoint(request: Request) -> Response:
            client = client_of(request.client.host if request.client else "")
            with contextlib.ExitStack() as held:
                body = await self._body(request, client, held)
                if not self._under_way.take(client, 1):
                    raise Refusal(503, "Too many requests are under way; try again")
                held.callback(self._under_way.give_back, client, 1)
                return reply(await unless_gone(request, self._asked(client, function, body)))

        return endpoint

    async def _asked(self, client: str, function: Callable[[dict[str, Any], str], dict[str, Any]], body: str) -> Any:
        async with self._turns.turn(client):
            return await asyncio.wrap_future(self._executor.submit(function, self._setting, body))

    async def _body(self, request: Request, client: str, held: contextlib.ExitStack) -> str:
        """The body's text. Raises Refusal for one that is too large, too slow, or not UTF-8."""
        too_large = Refusal(413, f"the body is larger than {self.body_bytes:,} bytes")
        length = request.headers.get("content-length", "")
        if length.isdigit() and int(length) > self.body_bytes:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(BODY_SECONDS):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > self.body_bytes:
                        raise too_large
                    if len(body) > SMALL_BYTES:
                        if not self._held.take(client, len(chunk)):
                            raise Refusal(503, "Too much is being sent; try again")
                        held.callback(self._held.give_back, client, len(chunk))
        except TimeoutError:
            raise Refusal(408, f"the body did not arrive within {BODY_SECONDS:g} s") from None
        try:
            return body.decode()
        except UnicodeDecodeError as error:
            raise Refusal(400, f"the body is not JSON: byte {error.start} is not UTF-8") from None


async def unless_gone(request: Request, work: Coroutine[Any, Any, Any]) -> Any:
    """What comes of the work; it is cancelled where its client goes away. The body must have been read."""
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_leaves(request))
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        raise ClientDisconnect
    finally:
        for task in (working, gone):
            task.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)


async def _leaves(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


def host_name(host: str) -> str:
    """The name or address of a Host header, without a port and brackets; empty where it is none."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([^\[\]:]+))(?::\d{1,5})?", host)
    return "" if found is None else (found[1] or found[2]).lower()


def reply(content: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    data = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(data, status, {"Cache-Control": "no-store", **(headers or {})}, "application/json; charset=utf-8")


def error_reply(status: int, message: str) -> Response:
    """An error as llama-server writes it."""
    headers = {"Retry-After": "1"} if status == 503 else {"Connection": "close"} if status in UNREAD else {}
    fields = {"code": status, "message": message, "type": TYPES.get(status, "server_error")}
    return reply({"error": fields}, status, headers)


async def _http_error(_: Request, error: Exception) -> Response:
    """What the router answers. llama-server knows routes by method and path, so a wrong method is not found too."""
    assert isinstance(error, HTTPException)
    if error.status_code in {404, 405}:
        return error_reply(404, "File Not Found")
    return error_reply(error.status_code, error.detail)


async def _refusal(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    return error_reply(error.status, error.message)


async def _jinjarun_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, JinjarunError)
    status = error.status
    if isinstance(error, WorkerError):
        status = 400 if error.details["reason"] in SPENT else 500
    return error_reply(status, str(error))


async def _gone(_: Request, error: Exception) -> Response:
    """Nobody reads this."""
    return error_reply(400, "the client went away")


SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)
STYLE = re.compile(r"<style>(.*?)</style>", re.DOTALL)
START = "/*START*/"
"""Where the page takes what it knows from the start, in a data block of JSON."""


def page(setting: dict[str, Any], props: dict[str, Any]) -> tuple[str, dict[str, str]]:
    """The page and its headers, which let it run its own script and style and ask this server, and nothing else."""
    text = resources.files("probes.serve").joinpath("page", "index.html").read_text(encoding="utf-8")
    start = {
        "templates": setting["templates"],
        "name": props["model_alias"],
        "build": props["build_info"],
        "paths": PATHS,
        "conversations": {name: _request(build()) for name, build in CHATS.items()},
    }
    policy = "; ".join(
        [
            "default-src 'none'",
            f"script-src {_hashes(SCRIPT, text)}",
            f"style-src {_hashes(STYLE, text)}",
            "connect-src 'self'",
            "img-src data:",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        ]
    )
    headers = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
    }
    return text.replace(START, json.dumps(start).replace("<", "\\u003c")), headers


def _hashes(part: re.Pattern[str], text: str) -> str:
    digests = (hashlib.sha256(found.encode()).digest() for found in part.findall(text))
    return " ".join(f"'sha256-{base64.b64encode(digest).decode()}'" for digest in digests)


def _request(chat: Any) -> dict[str, Any]:
    """A built-in conversation as the body of a request."""
    names = {"variables": "chat_template_kwargs"}
    return {names.get(key, key): value for key, value in chat.items()}


def listen(host: str, port: int) -> socket.socket:
    """A listening socket. Raises SourceError where there can be none."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        bound = socket.create_server((host, port), family=family, backlog=CONNECTIONS)
    except (OSError, OverflowError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SourceError(f"cannot listen on {host}:{port}: {reason}", path=f"{host}:{port}", reason=reason) from None
    bound.setsockopt(
        socket.IPPROTO_TCP, socket.TCP_NODELAY, 1
    )  # a body must not wait for the client to confirm headers
    return bound


def http_server(server: TemplateServer) -> uvicorn.Server:
    """What speaks HTTP for the application; its `run` takes listening sockets, its `should_exit` ends it."""
    config = uvicorn.Config(
        server.app,
        log_level="error",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        ws="none",
        interface="asgi3",
        proxy_headers=False,  # a client would say itself who it is
        http=Connection,
        h11_max_incomplete_event_size=HEAD_BYTES,
        timeout_keep_alive=5,
        timeout_graceful_shutdown=2,
    )
    return uvicorn.Server(config)


def serve(server: TemplateServer, bound: socket.socket) -> None:
    """Answers on a listening socket until the process is told to stop."""
    try:
        http_server(server).run(sockets=[bound])
    finally:
        server.close()
