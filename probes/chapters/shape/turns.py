"""The text around the turns of user, assistant and system, the generation prompt, and what ends an answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from probes.chapters.shape.requests import UNKNOWN_BOS, answer, next_question, question
from probes.chats.canaries import ANSWER, SECOND_USER, SYSTEM, USER
from probes.chats.messages import say
from probes.chats.named import conversation
from probes.rendering.markers import MARKER
from probes.rendering.texts import after, between, common_end, common_start
from probes.report import Bos, SystemShape, Turn

if TYPE_CHECKING:
    from probes.chapters.shape.requests import Requests

EMPTY_BLOCK = re.compile(r"<([\w:]+)>\s*</\1>\s*\Z")
"""An element without content at the end of a text: a block of reasoning that is written all the same."""

LONGEST_END = 40
"""Code points that the text which ends a turn may have where it is no marker."""


@dataclass(slots=True)
class Frame:
    """What is known of the turns so far. Texts are as in the middle of a conversation, without a reasoning block."""

    user_open: str = ""
    user_close: str = ""
    assistant_open: str = ""
    assistant_close: str = ""
    header: str = ""
    """What begins a turn of the assistant, whatever it then writes: answer, reasoning or calls."""
    opener: str | None = None
    """The marker that opens turns, whoever's they are."""
    prompt: str | None = None
    """The generation prompt; None where no request shows it."""
    prompt_is_suffix: bool = False
    end: str | None = None
    ended_after_answer: bool | None = None
    last_answer_open: str | None = None
    """What stands before an answer that is the last message, without its user turn's end."""
    variants: list[tuple[dict[str, Any], str]] = field(default_factory=list)
    known: bool = False


def frame(ask: Requests) -> Frame:
    """User and assistant, from conversations that grow by one message."""
    found = Frame()
    one = ask.text([question()])
    two = ask.text([question(), answer()])
    three = ask.text([question(), answer(), next_question()])
    _prompt(ask, found, one)
    if one is None or USER not in one:
        return found
    tail = after(one, USER) or ""
    if three is None or (to_answer := between(three, USER, ANSWER)) is None:
        to_answer = between(two, USER, ANSWER) if two is not None else None
    if to_answer is None:
        found.user_open, found.user_close = _user_alone(one), tail
        return found
    found.known = True
    found.user_close = tail if to_answer.startswith(tail) else common_start(tail, to_answer)
    found.assistant_open = to_answer[len(found.user_close) :]
    end = after(two, ANSWER)
    to_user = between(three, ANSWER, SECOND_USER) if three is not None else None
    before = one.partition(USER)[0]
    if to_user is None:
        found.assistant_close, found.user_open = end or "", _user_alone(one)
    elif end and to_user.startswith(end):
        found.assistant_close, found.user_open = end, to_user[len(end) :]
    else:
        found.user_open = common_end(before, to_user)
        if MARKER.match(found.user_open.lstrip()):
            found.user_open = found.user_open.lstrip()
        if found.user_close.strip():
            found.user_open = found.user_open.removeprefix(found.user_close)
        found.assistant_close = to_user[: len(to_user) - len(found.user_open)]
    if to_user is not None and not (end and to_user.startswith(end) and found.prompt):
        _cut_at_openings(found, before, (tail, end or ""), to_user)
    _answer_end(found, end)
    last = between(two, USER, ANSWER) if two is not None else None
    if last is not None and last.startswith(found.user_close):
        found.last_answer_open = last[len(found.user_close) :]
    found.header = _header(found)
    turns = (found.user_open, found.user_close, found.assistant_open, found.assistant_close)
    if any(canary in text for canary in (USER, ANSWER, SECOND_USER) for text in turns):
        # contents are repeated: what stands between them is no turn
        return Frame(prompt=found.prompt, prompt_is_suffix=found.prompt_is_suffix, variants=found.variants)
    return found


def _cut_at_openings(found: Frame, before: str, ends: tuple[str, str], to_user: str) -> None:
    """Moves what begins with the marker that opens turns to the turn that it opens.

    It is the first marker of the whole text that also comes before a later question (BOS does not), unless a turn ends
    with it.
    """
    closing = [marker.group() for end in ends if (marker := MARKER.match(end.lstrip())) is not None]
    opener = next((marker for marker in MARKER.findall(before) if marker in to_user and marker not in closing), None)
    if opener is None:
        return
    found.opener = opener
    at = found.assistant_close.find(opener)
    if at >= 0:
        found.user_open = found.assistant_close[at:] + found.user_open
        found.assistant_close = found.assistant_close[:at]
    at = found.user_open.find(opener)
    if at > 0 and found.user_open[:at].strip():
        found.assistant_close += found.user_open[:at]
        found.user_open = found.user_open[at:]
    at = found.user_close.find(opener)
    if at >= 0:
        found.assistant_open = found.user_close[at:] + found.assistant_open
        found.user_close = found.user_close[:at]


def _user_alone(text: str) -> str:
    """What stands before the only question, where no second one shows what belongs to the turn."""
    return text.partition(USER)[0]


def _answer_end(found: Frame, last: str | None) -> None:
    """What ends an answer; where the last one and an earlier one end otherwise, what ends the last."""
    ending = found.assistant_close
    if last is not None and last.strip():
        ending = common_start(last, ending).strip() or last
    found.end = _end_marker(ending)
    if found.end is not None:
        found.ended_after_answer = True


def _end_marker(text: str) -> str | None:
    text = text.strip()
    markers = MARKER.findall(text)
    if markers:
        last: str = markers[-1]
        return last
    first = text.split("\n", 1)[0]
    return first if 0 < len(first) <= LONGEST_END else None


def _prompt(ask: Requests, found: Frame, without: str | None) -> None:
    with_prompt = ask.text([question()], prompt=True)
    if with_prompt is None or without is None:
        return
    found.prompt_is_suffix = with_prompt.startswith(without)
    found.prompt = _added(with_prompt, without)
    for setting in ask.settings:
        other = ask.text([question()], prompt=True, variables=setting)
        if other is None or other == with_prompt:
            continue
        base = ask.text([question()], variables=setting)
        text = _added(other, base) if base is not None else None
        if text is not None and text != found.prompt:
            found.variants.append((setting, text))


def _added(with_prompt: str, without: str) -> str | None:
    """What a generation prompt writes at the end, whatever else it changes; None where the ends cannot be compared."""
    if with_prompt.startswith(without):
        return with_prompt[len(without) :]
    end, ending = after(with_prompt, USER), after(without, USER)
    if end is None or ending is None:
        return None
    return end[len(common_start(end, ending)) :]


def _header(found: Frame) -> str:
    """The start that answer, generation prompt and its variants have in common, before any block of reasoning."""
    header = found.assistant_open
    block = EMPTY_BLOCK.search(header)
    if block is not None:
        header = header[: block.start()]
    shared_with_user = common_start(header, found.user_open)
    for text in (found.prompt, *(text for _, text in found.variants), found.last_answer_open):
        common = _without_named_marker(common_start(header, text), header, text) if text else ""
        if common.strip() and len(common) > len(shared_with_user):
            header = common
    return header


def _without_named_marker(common: str, a: str, b: str) -> str:
    """`common` without a last marker that a word completes, another one in each text."""
    if not (a[len(common) : len(common) + 1].isalpha() and b[len(common) : len(common) + 1].isalpha()):
        return common
    markers = list(MARKER.finditer(common))
    return common[: markers[-1].start()] if markers and markers[-1].end() == len(common) else common


def bos(ask: Requests) -> Bos:
    """How often one question is given the BOS token, and where first: through its variable, or as text of its own."""
    text = ask.text([question()], prompt=True, variables={"bos_token": UNKNOWN_BOS})
    if text is None:
        return Bos(written=0, at=None)
    tokens = [UNKNOWN_BOS]
    if ask.renders.bos_token and ask.renders.bos_token != ask.renders.eos_token:
        tokens.append(ask.renders.bos_token)
    places = [at for token in tokens if (at := text.find(token)) >= 0]
    return Bos(written=sum(map(text.count, tokens)), at=min(places, default=None))


def trims(ask: Requests, role: str) -> bool | None:
    """Whether spaces and line breaks around a text of this role are taken away."""
    chat = conversation("spaces")
    padded: str = next(message["content"] for message in chat["messages"] if message["role"] == role)
    text = ask.renders.render(ask.path, chat).text
    if text is None or padded.strip() not in text:
        text = ask.text([message for message in chat["messages"] if message["role"] != "system" or role == "system"])
    return trimmed(text, padded)


def trimmed(text: str | None, padded: str) -> bool | None:
    if text is None or padded.strip() not in text:
        return None
    return padded not in text


def system(ask: Requests, found: Frame) -> tuple[SystemShape | None, Turn | None]:
    """Where the system text lands, what stands around it, and what is written when there is none."""
    message = say("system", SYSTEM)
    alone = ask.text([question()], form=ask.form.but(lead=False))
    two = ask.text([message, question()])
    four = ask.text([message, question(), answer(), next_question()])
    if two is None and four is None:
        if alone is None:
            return None, None
        default, header = _default(ask, found, alone, None, "")
        return _system_shape("refused", default, header), None
    text = four if four is not None else two
    assert text is not None
    placement = _placement(text, found)
    shown = two if two is not None and SYSTEM in two else text
    if SYSTEM not in shown:
        default, header = _default(ask, found, alone, None, "")
        return _system_shape("lost", default, header), None
    before = shown.partition(SYSTEM)[0]
    rest = shown.rpartition(SYSTEM)[2].partition(USER)[0]
    if placement == "start":
        close = rest[: len(rest) - len(found.user_open)] if rest.endswith(found.user_open) else rest
    else:
        close = rest
    default, header = _default(ask, found, alone, before, close if placement == "start" else None)
    opening = _own_open(ask, found, before, alone, inside_user=placement != "start")
    turn = Turn(
        open=opening,
        close=close,
        trims_content=trims(ask, "system"),
        rendered_as=None if placement == "start" else "user",
    )
    return _system_shape(placement, default, header), turn


def _system_shape(placement: str, default: str | None, header: bool) -> SystemShape:
    return SystemShape(placement=placement, default_text=default, header_without_system=header, with_tools=None)


def _placement(text: str, found: Frame) -> str:
    """In which turn of a longer conversation the system text stands."""
    at = text.find(SYSTEM)
    if at < 0:
        return "lost"
    if at > text.find(ANSWER) >= 0:
        return "last_user_turn" if at < text.find(SECOND_USER) else "end"
    user = text.find(USER, at)
    if user < 0:
        return "start" if USER not in text else "first_user_turn"
    gap = text[at + len(SYSTEM) : user]
    own = found.user_open.strip()
    return "start" if not own or gap.endswith(found.user_open) else "first_user_turn"


def _own_open(ask: Requests, found: Frame, before: str, alone: str | None, *, inside_user: bool) -> str:
    """The part of what stands before the system text that belongs to it: without BOS and what every prompt begins
    with."""
    first = alone.partition(USER)[0] if alone is not None else ""
    if inside_user:
        common = common_start(before, first)
        return before[len(common) :]
    preamble = first[: len(first) - len(found.user_open)] if first.endswith(found.user_open) else ""
    if preamble and before.startswith(preamble):
        return before[len(preamble) :]
    start = common_start(found.user_open, found.header) if found.header else ""
    if start.strip() and start in before:
        return before[before.rfind(start) :]
    return before.removeprefix(ask.bos)


def _default(
    ask: Requests, found: Frame, alone: str | None, before: str | None, close: str | None
) -> tuple[str | None, bool]:
    """The system text that is written when none is sent, and whether a system header is written then.

    `before` and `close` stand around the system text that is sent; null where there is none."""
    if alone is None or USER not in alone:
        return None, False
    first = alone.partition(USER)[0]
    rest = first[: len(first) - len(found.user_open)] if first.endswith(found.user_open) else first
    if before is not None and close is not None and close and rest.endswith(close) and rest.startswith(before):
        text = rest[len(before) : len(rest) - len(close)]
        return text or None, True
    if before is not None and close is None:
        common = common_start(before, rest)
        extra = rest[len(common) :]
        return extra.strip() or None, False
    turn = _framed(found, rest)
    if turn is not None:
        return turn, True
    return (None, False)


def _framed(found: Frame, rest: str) -> str | None:
    """The text of a turn, built as the user's is, that stands before the first user turn."""
    start, end = found.user_open.partition("user")[::2]
    close = found.user_close
    if not start.strip() or not close.strip() or not rest.endswith(close) or start not in rest:
        return None
    inner = rest[rest.find(start) + len(start) : len(rest) - len(close)]
    mark = end.strip() or end
    if mark and mark in inner:
        return inner.partition(end if end in inner else mark)[2]
    return inner
