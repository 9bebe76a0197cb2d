"""What a template writes around texts is what its author meant: no blanks of its source, no broken marker, no turn of a
system that said nothing.

Asked of conversations without tools, whose texts hold none of what is looked for.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import say
from probes.laws.law import Law, Violation
from probes.laws.prompt import text_of
from probes.rendering.markers import ANY_MARKER, CONTROL_SHAPES
from probes.rendering.renders import LLAMA_RAW, RAW

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat
    from probes.laws.case import Case
    from probes.rendering.input_form import PathObserver

BOS = "<s>"
"""Stands for BOS where its text is not known, so that what stands before it is seen."""
INDENTED = re.compile(rf"\n[ \t]+(?={CONTROL_SHAPES}|</?(?:start|end)_of_turn>|\[/?INST\]|</?s>)")
"""A marker behind blanks on a line of its own, as in the source."""
INDENTATION = re.compile(r"\s*\n[ \t]+(?=\S)")
"""A line that begins with blanks, as in the source."""
CUT = re.compile(r"<[|｜][ \t]*[A-Za-z][\w▁]*[ \t]+[|｜]>|<[|｜][ \t]+[A-Za-z][\w▁]*[|｜]>")
"""A marker with a blank inside of its brackets: no token of any vocabulary."""
HEADER = re.compile(r"system|SYS|SYSTEM_PROMPT", re.IGNORECASE)
HEADER_REACH, FRAME_SHOWN = 40, 24


def layout(case: Case) -> Iterator[Violation]:
    if case.chat.get("tools") or any(message.get("tool_calls") for message in case.messages):
        return
    chat = with_bos(case)
    text = case.subject.render(chat).text
    if text is None:
        return
    texts = [text_of(message) for message in case.messages]
    yield from _blanks(
        chat, text, texts, bos=chat.get("variables", {}).get("bos_token") or case.subject.renders.bos_token
    )
    yield from _markers(chat, text, texts)


def with_bos(case: Case) -> Chat:
    """The request as it is, with no generation prompt behind an answer, and with some BOS where the template reads it
    and none is known."""
    chat: dict[str, Any] = {**case.chat}
    subject = case.subject
    if subject.path in (RAW, LLAMA_RAW) and "bos_token" in subject.on.names and not subject.renders.bos_token:
        chat["variables"] = {"bos_token": BOS, **case.chat.get("variables", {})}
    return chat  # type: ignore[return-value]  # the keys of a Chat


def _blanks(chat: Chat, text: str, texts: list[str], bos: str) -> Iterator[Violation]:
    """Blanks before the whole prompt, or, indented, right after BOS; blanks before a marker that begins a line."""
    if any(one != one.strip() or "\n " in one or "\n\t" in one for one in texts):
        return  # whose blanks they are cannot be told
    led = re.match(r"\s+(?=\S)", text)
    if led is not None:
        said = f"the prompt begins with {led[0]!r} before the first thing that the template writes"
        yield Violation("layout", "TR103", "leading", said, chat, text.lstrip(), text)
    after_bos = INDENTATION.match(text.removeprefix(bos)) if bos and text.startswith(bos) else None
    if after_bos is not None:
        said = f"{after_bos[0]!r} stands between BOS and the first thing that the template writes"
        yield Violation("layout", "TR103", "leading", said, chat, bos + text.removeprefix(bos).lstrip(), text)
    indented = INDENTED.search(text)
    if indented is not None:
        mark = ANY_MARKER.match(text, indented.end())
        said = (
            f"{indented[0]!r} stands before {mark[0] if mark else text[indented.end() :][:12]!r}: blanks of the source"
        )
        yield Violation("layout", "TR103", "indented", said, chat, "", text[indented.start() :][:40])


def _markers(chat: Chat, text: str, texts: list[str]) -> Iterator[Violation]:
    cut = CUT.search(text)
    if cut is not None and not any(cut[0] in one for one in texts):
        said = f"{cut[0]!r} is a marker with a blank inside: no token, and read as ordinary text"
        yield Violation("layout", "ST102", "cut", said, chat, re.sub(r"\s", "", cut[0]), cut[0])


def empty_turn(case: Case) -> Iterator[Violation]:
    """Where no system message is sent, the frame of one stands there all the same, with nothing inside."""
    roles = {message["role"] for message in case.messages}
    if roles & {"system", "developer"} or case.chat.get("tools"):
        return
    chat: dict[str, Any] = {**case.chat}
    led: dict[str, Any] = {**chat, "messages": [say("system", canaries.SYSTEM), *case.messages]}
    bare, whole = (case.subject.render(one).text for one in (chat, led))  # type: ignore[arg-type]  # the keys of a Chat
    if bare is None or whole is None or whole.count(canaries.SYSTEM) != 1:
        return
    before, after = whole.split(canaries.SYSTEM)
    headers = list(HEADER.finditer(before, max(0, len(before) - HEADER_REACH)))
    if _tight(bare) != _tight(before + after) or not headers:
        return
    inside = ANY_MARKER.sub("", before[headers[-1].end() :])
    if re.search(r"\w", inside) or "think" in before[headers[-1].end() :]:
        return  # a text or a switch of the template's own stands in the turn
    if ANY_MARKER.match(after.lstrip()) is None or ANY_MARKER.search(before) is None:
        return
    frame = f"{before.rstrip()[-FRAME_SHOWN:]}{after.lstrip()[:FRAME_SHOWN]}"
    said = f"without a system message the frame of one is written, with nothing inside: {frame!r}"
    yield Violation("empty-system-turn", "RL108", "system", said, case.chat, "", bare)


def plain_chats(on: PathObserver) -> list[Chat]:
    """Turns behind a system message where one is written, and a question alone."""
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    lead = [say("system", canaries.SYSTEM)] if on.writes_system else []
    return [on.form.chat([*lead, *turns]), on.form.chat(turns[:1])]


def _tight(text: str) -> str:
    return "".join(text.split())


LAWS = (
    Law("layout", ("TR103", "ST102"), "no blanks of the source stand before or inside of markers", layout),
    Law(
        "empty-system-turn",
        ("RL108",),
        "no system turn stands there for which nothing was sent",
        empty_turn,
        heavy=True,
    ),
)
