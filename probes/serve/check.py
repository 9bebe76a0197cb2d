"""A running llama-server beside the path that this project implements: the same requests to both.

What `/props` does not tell is found out from the prompts: whether its tokenizer adds BOS and EOS (the server then takes
them away), and whether its date is a day off, as in another time zone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from jinjarun.runtime.clock import resolve_now
from jinjarun.serving.builtin_formats import FORMATS
from jinjarun.serving.caps import BUILD
from probes.chats.named import CHATS
from probes.prober import CONTEXT, first_difference
from probes.rendering.paths import Setting, answer_on_path, llama_server
from probes.rendering.renders import LLAMA_SERVER
from probes.report import ServerCheck, ServerDifference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from datetime import datetime

    from jinjarun.sources.server import Prompt, RunningServer

ADDS = ((False, False), (True, False), (False, True), (True, True))
"""What a tokenizer may add: BOS, EOS."""

DAYS = (0, -1, 1)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, by the name of its conversation, and what the server made of it."""

    name: str
    body: dict[str, Any]
    prompt: Prompt

    def difference(self, setting: Setting) -> ServerDifference | None:
        """How the server parts from us; None where both give the same prompt, or an error of the same status."""
        theirs = self.prompt
        try:
            ours: str | JinjarunError = answer_on_path(LLAMA_SERVER, setting, self.body).text
        except JinjarunError as error:
            ours = error
        if isinstance(ours, JinjarunError):
            if theirs.status == ours.status:
                return None
            said = theirs.text if theirs.text is not None else f"error {theirs.status}: {theirs.error}"
            return ServerDifference(
                conversation=self.name, at=None, server=said[:CONTEXT], ours=f"error {ours.status}: {ours.message}"
            )
        if theirs.text == ours:
            return None
        if theirs.text is None:
            said = f"error {theirs.status}: {theirs.error}"
            return ServerDifference(conversation=self.name, at=None, server=said, ours=ours[:CONTEXT])
        at = first_difference(theirs.text, ours) or 0
        part = slice(max(0, at - CONTEXT), at + CONTEXT)
        return ServerDifference(conversation=self.name, at=at, server=theirs.text[part], ours=ours[part])


def ask(server: RunningServer, bodies: Mapping[str, dict[str, Any]]) -> list[Asked]:
    return [Asked(name, body, server.apply_template(body)) for name, body in bodies.items()]


def conversations() -> dict[str, dict[str, Any]]:
    """The built-in conversations as bodies of requests."""
    return {name: as_body(build()) for name, build in CHATS.items()}


def as_body(chat: Mapping[str, Any]) -> dict[str, Any]:
    """A conversation as a client sends it to a server."""
    return {"chat_template_kwargs" if key == "variables" else key: value for key, value in chat.items()}


def setting_of(server: RunningServer, *, now: datetime | float | None = None) -> Setting:
    """What the server was started with, as far as it tells."""
    source = server.source()
    bos, eos = source.tokens.bos, source.tokens.eos
    return Setting(
        {name: found.text for name, found in source.chosen.items()},
        bos_token=(bos and bos.text) or "",
        eos_token=(eos and eos.text) or "",
        now=resolve_now(now),
    )


def check_server(
    server: RunningServer, asked: Iterable[Asked] | None = None, *, now: datetime | float | None = None
) -> ServerCheck:
    """Where the server differs, on the built-in conversations or on what it was `asked`.

    `now` is what its clock shows, where that is not this moment. Raises SourceError where it gives no usable answer.
    """
    found = list(asked) if asked is not None else ask(server, conversations())
    plain = setting_of(server, now=now)
    caps = _caps(server, plain)
    best, differences = plain, _differences(plain, found)
    for setting in _other_settings(plain) if differences else ():
        others = _differences(setting, found)
        if len(others) < len(differences):
            best, differences = setting, others
        if not differences:
            break
    return ServerCheck(
        url=server.url,
        build=server.build,
        version=BUILD,
        equal=not differences and not caps,
        asked=len(found),
        adds_bos=best.add_bos,
        adds_eos=best.add_eos,
        days_apart=(resolve_now(best.now) - resolve_now(plain.now)).days,
        caps=caps,
        differences=differences,
        note=_note(server) if differences or caps else None,
    )


def _differences(setting: Setting, asked: list[Asked]) -> list[ServerDifference]:
    return [found for one in asked if (found := one.difference(setting)) is not None]


def _other_settings(plain: Setting) -> Iterable[Setting]:
    """The settings that `/props` leaves open, the likeliest first; a token that is not there cannot be added."""
    name = plain.templates["default"]
    if name in FORMATS:
        yield replace(plain, format=name)
    for days in DAYS:
        for bos, eos in ADDS:
            if (bos and not plain.bos_token) or (eos and not plain.eos_token) or not (days or bos or eos):
                continue
            yield replace(plain, add_bos=bos, add_eos=eos, now=resolve_now(plain.now) + timedelta(days=days))


def _caps(server: RunningServer, setting: Setting) -> dict[str, tuple[bool | None, bool | None]]:
    """The flags that differ; a server that gives none has none that differ."""
    theirs = server.caps
    if theirs is None:
        return {}
    try:
        ours: dict[str, bool] = llama_server(setting).caps.to_dict()
    except JinjarunError:
        ours = {}
    names = sorted(theirs.keys() | ours.keys())
    return {name: (theirs.get(name), ours.get(name)) for name in names if theirs.get(name) != ours.get(name)}


def _note(server: RunningServer) -> str:
    if server.build_number != int(BUILD[1:]):
        build = f"build {server.build}" if server.build else "an unknown build"
        return f"the server is {build} and what is compared with it is {BUILD}: the builds may differ"
    return "what /props does not show may explain it: --chat-template-kwargs, --no-jinja, --reasoning-budget, its clock"
