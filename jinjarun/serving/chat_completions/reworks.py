"""What a server changes between a request and its template, and why it refuses one: each a row of a table."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class ReworkRow:
    """A fact about a server. `why` is one sentence; `source` is the file of the server that it was read from, by its
    path below `vllm/` or `sglang/srt/`, with the function where that helps."""

    why: str
    source: str


@dataclass(frozen=True, slots=True)
class ServerRework:
    """A row applied at `path`: a place in the body, the name of a variable, "template" or "prompt"."""

    name: str
    path: str
    row: ReworkRow

    @property
    def why(self) -> str:
        return self.row.why

    @property
    def source(self) -> str:
        return self.row.source

    def to_dict(self) -> dict[str, str]:
        return {"name": self.name, "path": self.path, "why": self.why, "source": self.source}


@dataclass(slots=True)
class Changes:
    """The reworks of one request, in the order in which they were done. `rows` is the server's table."""

    rows: Mapping[str, ReworkRow]
    found: list[ServerRework] = field(default_factory=list)

    def copy(self) -> Changes:
        return Changes(self.rows, list(self.found))

    def note(self, name: str, path: str) -> None:
        self.found.append(ServerRework(name, path, self.rows[name]))
