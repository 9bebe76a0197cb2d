"""`jinjarun serve` on a free port of this machine, in a thread."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection
from typing import Any

import pytest

from probes.rendering.paths import Setting
from tests.families import NOW, family

pytest.importorskip("starlette", reason="the server needs: pip install 'jinjarun[server]'")
pytest.importorskip("uvicorn", reason="the server needs: pip install 'jinjarun[server]'")

from probes.serve.app import TemplateServer, http_server, listen


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Running:
    """`source` is the address that clients have, of this machine like the server's."""

    host: str
    port: int
    server: TemplateServer | None = None
    source: str = "127.0.0.1"

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}"

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Reply:
        """`body`: bytes as they are, anything else as JSON. A body is of that type unless the headers say otherwise;
        an empty header is left out."""
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        sent = ({"Content-Type": "application/json"} if data is not None else {}) | {
            name.replace("_", "-"): value for name, value in headers.items()
        }
        source = (self.source, 0)
        with contextlib.closing(HTTPConnection(self.host, self.port, timeout=60, source_address=source)) as connection:
            connection.request(method, path, data, {name: value for name, value in sent.items() if value})
            response = connection.getresponse()
            return Reply(response.status, {k.lower(): v for k, v in response.getheaders()}, response.read())

    def post(self, path: str, body: Any) -> Reply:
        return self.ask("POST", path, body)


def of_family(name: str, **changes: Any) -> Setting:
    found = family(name)
    return Setting({"default": found.source}, **{**found.tokens, "now": NOW, **changes})


@contextlib.contextmanager
def running(setting: Setting, **options: Any) -> Iterator[Running]:
    with listen("127.0.0.1", 0) as bound:
        application = TemplateServer(setting, **options)
        http = http_server(application)
        thread = threading.Thread(target=http.run, kwargs={"sockets": [bound]})
        thread.start()
        try:
            while not http.started and thread.is_alive():
                time.sleep(0.01)
            yield Running("127.0.0.1", bound.getsockname()[1], application)
        finally:
            http.should_exit = True
            thread.join()
            application.close()
