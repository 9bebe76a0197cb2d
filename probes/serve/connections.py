"""Connections of `jinjarun serve`: uvicorn's, with what it has no option for.

uvicorn ends a connection that is idle after an answer, and bounds how many there are by refusing requests. So whoever
opens enough connections and says nothing on them keeps everyone out. Here a connection that a client keeps waiting ends
after a while, and one too many ends the one that has waited longest for its client: of that client, or of all.
"""

from __future__ import annotations

import contextlib
import json
from asyncio import BaseTransport, TimerHandle, Transport
from typing import Any, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from probes.serve.shares import client_of

CONNECTIONS, CONNECTIONS_EACH = 512, 32
"""Connections that may be open at the same time, idle ones included: in all, and of one client."""

HEADER_SECONDS = 10.0
"""How long a client may take to send the head of a request, or without taking anything of an answer."""


class Connection(H11Protocol):
    """One connection. uvicorn makes them and keeps those of a server in `connections`."""

    ended = False
    _timer: TimerHandle | None = None
    _unsent = 0

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(cast("Transport", transport))
        self.of = client_of(self.client[0] if self.client else "")
        self._wait()
        self._make_room()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        self._wait()
        super().on_response_complete()
        if not self.cycle.response_complete:
            self._stop_waiting()

    def connection_lost(self, exc: Exception | None) -> None:
        self.ended = True
        self._stop_waiting()
        super().connection_lost(exc)

    def send_400_response(self, msg: str) -> None:
        """The answer to what is no HTTP, in the words of llama-server."""
        error = {"code": 400, "message": msg, "type": "invalid_request_error"}
        body = json.dumps({"error": error}).encode()
        headers = [("content-type", "application/json; charset=utf-8"), ("connection", "close")]
        headers.append(("content-length", str(len(body))))
        with contextlib.suppress(h11.LocalProtocolError):  # an answer is on its way already
            for event in (h11.Response(status_code=400, headers=headers), h11.Data(data=body), h11.EndOfMessage()):
                self.transport.write(self.conn.send(cast("Any", event)) or b"")
        self.transport.close()

    @property
    def waits_for_client(self) -> bool:
        """Whether the client has to send or to take something, and no work is under way for it."""
        request = self.cycle
        return request is None or request.more_body or request.response_started

    def end(self) -> None:
        self.ended = True
        self._stop_waiting()
        self.transport.abort()

    def _make_room(self) -> None:
        there = [one for one in cast("set[Connection]", self.connections) if not one.ended]
        ours = [one for one in there if one.of == self.of]
        crowd = ours if len(ours) > CONNECTIONS_EACH else there if len(there) > CONNECTIONS else []
        if crowd:
            waiting = [one for one in crowd if one.waits_for_client and one is not self]
            min(waiting, key=lambda one: one.since, default=self).end()

    def _wait(self) -> None:
        self._stop_waiting()
        self.since = self.loop.time()
        self._unsent = self.transport.get_write_buffer_size()
        self._timer = self.loop.call_later(HEADER_SECONDS, self._waited)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _waited(self) -> None:
        """Goes on waiting only for a client that takes an answer, however slowly."""
        if 0 < self.transport.get_write_buffer_size() < self._unsent:
            since = self.since
            self._wait()
            self.since = since
        else:
            self.end()
