"""Contents that are strings, parts, media; documents."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from jinjarun.sequences import common_prefix
from probes.chapters.observed import explain
from probes.chapters.observed.question import Verdict, look, question, shown_at, sought
from probes.chats import canaries as c
from probes.rendering.input_form import cached_chat
from probes.rendering.outcomes import complaint, fate_of
from probes.rendering.renders import LLAMA_SERVER, SERVERS

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rendering.input_form import PathObserver

UNMARKED = "the part leaves no trace, without an error"


@question(explain=explain.string_content, reworked=(LLAMA_SERVER,))
def string_content(on: PathObserver) -> Verdict:
    plain = on.form.but(parts="no")
    chats = (
        cached_chat(c.user_only, plain),
        cached_chat(c.system_user, plain),
        cached_chat(c.tools_without_system, plain),
    )
    return sought(on, chats, (c.USER,), "a string is written")


@question(explain=explain.typed_content, repaired=SERVERS)
def typed_content(on: PathObserver) -> Verdict:
    """Yes where at least one part is written."""
    several, one = several_text_parts(on), one_text_part(on)
    if one.answer == "yes" and several.answer != "yes":
        return Verdict("yes", f"one text part is written, but of several: {several.reason}", one.shown)
    return several if several.answer == "yes" else one


@question(repaired=SERVERS)
def one_text_part(on: PathObserver) -> Verdict:
    chats = (cached_chat(build, _plain(on)) for build in (c.text_parts, c.one_text_part))
    return sought(on, chats, (c.PART,), "a text part is written as text")


@question(repaired=SERVERS)
def several_text_parts(on: PathObserver) -> Verdict:
    return sought(on, (cached_chat(c.text_parts, _plain(on)),), (c.PART, c.SECOND_PART), "both texts are written")


@question(projector=True)
def image_parts(on: PathObserver) -> Verdict:
    return _media(on, "image", c.IMAGE_PARTS, c.image)


@question(projector=True)
def audio_parts(on: PathObserver) -> Verdict:
    return _media(on, "audio", c.AUDIO_PARTS, c.audio)


def _media(on: PathObserver, what: str, shapes: tuple[dict[str, Any], ...], build: Callable[..., Chat]) -> Verdict:
    """Yes where a part of this kind leaves something beside the text, and no dump of it."""
    form = _plain(on)
    if what not in on.renders.source:
        both = cached_chat(c.media, form)
        text = on.ask(both).text
        if text is None or c.PART not in text or text == on.ask(cached_chat(c.one_text_part, form)).text:
            verdict = sought(on, (both,), (c.URL,), "")
            return verdict if text is None else Verdict("no", UNMARKED, (look(on, both, "lost"),))
        shapes = shapes[:1]
    failure: Verdict | None = None
    for part in shapes:
        chat = build(form, part)
        outcome = on.ask(chat)
        plain = on.ask(cached_chat(c.one_text_part, form))
        reason = UNMARKED
        if outcome.limited:
            return Verdict("unknown", "a limit was hit", (look(on, chat, "limit"),))
        if outcome.text is None:
            reason = complaint(outcome)
        elif fate_of(outcome, c.PART) != "written":
            reason = "the text beside it is not written as text"
        elif outcome.text != (plain.text if plain.ok else None):
            if not _dumps_media(outcome.text):
                at = common_prefix(plain.text or "", outcome.text)
                return Verdict("yes", f"a part of type {part['type']} is marked", (shown_at(on, chat, at),))
            reason = "it is only printed raw, as the object of the request"
        if failure is None or failure.fails:
            fate = fate_of(outcome, c.PART)
            failure = Verdict("no", reason, (look(on, chat, "lost" if fate == "written" else fate),))
    assert failure is not None
    return failure


@question(in_source=("documents",))
def documents(on: PathObserver) -> Verdict:
    verdict = sought(on, (cached_chat(c.documents, on.form),), (c.DOCUMENT,), "text of a document is written")
    if "documents" not in on.names and verdict.answer == "no" and "leaves no trace" in verdict.reason:
        return Verdict("no", "no variable for them is read", verdict.shown)
    return verdict


def _plain(on: PathObserver) -> Form:
    """The form of requests whose parts are written here, one by one."""
    return on.form.but(parts="no")


def _dumps_media(text: str) -> bool:
    return re.search(r"""['"](?:image_url|image|audio|audio_url|input_audio)['"]\s*:""", text) is not None
