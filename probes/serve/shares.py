"""What one client may have of a server, so that something is left for the others."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter, deque
from ipaddress import IPv6Address, ip_address
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator


def client_of(address: str) -> str:
    """Who is behind an address, as far as that can be told: of IPv6 its network of 64 bits, which one host fills."""
    try:
        known = ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if not isinstance(known, IPv6Address):
        return address
    return str(known.ipv4_mapped or IPv6Address(int(known) >> 64 << 64))


class Share:
    """An amount that clients hold: `whole` at most all together, `each` at most one of them."""

    def __init__(self, whole: int, each: int) -> None:
        self.whole, self.each = whole, each
        self._held: Counter[str] = Counter()
        self._all = 0

    def take(self, client: str, amount: int) -> bool:
        """False, and nothing is taken, where that would be too much."""
        if self._all + amount > self.whole or self._held[client] + amount > self.each:
            return False
        self._held[client] += amount
        self._all += amount
        return True

    def give_back(self, client: str, amount: int) -> None:
        self._all -= amount
        self._held[client] -= amount
        if not self._held[client]:
            del self._held[client]


class Turns:
    """Which call has a worker next: clients in turn, and while there is more than one worker, none has the last one
    beside all others."""

    def __init__(self, workers: int) -> None:
        self._free = workers
        self._each = max(1, workers - 1)
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        self._working: Counter[str] = Counter()

    @contextlib.asynccontextmanager
    async def turn(self, client: str) -> AsyncIterator[None]:
        """Waits for a worker, which is the client's inside. Whoever is cancelled leaves the queue."""
        mine: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(mine)
        self._call_next()
        try:
            await mine
            yield
        finally:
            if mine.done() and not mine.cancelled():
                self._free += 1
                self._working[client] -= 1
            mine.cancel()
            self._call_next()

    def _call_next(self) -> None:
        """Gives the free workers away. A client that gets one stands behind the others."""
        while self._free:
            client = next((one for one in self._waiting if self._working[one] < self._each), None)
            if client is None:
                return
            queue = self._waiting.pop(client)
            mine = queue.popleft()
            if queue:
                self._waiting[client] = queue
            if not mine.done():
                self._free -= 1
                self._working[client] += 1
                mine.set_result(None)
