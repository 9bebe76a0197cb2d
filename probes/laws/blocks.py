"""Reasoning inside a text is treated as reasoning in its field: kept whole or taken out whole, in one block."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.laws.law import Law, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator

    from probes.chats.messages import Chat
    from probes.laws.case import Case

TAGS = ("think", "thinking", "thought", "reasoning")
FORMS = (
    "<{tag}>{thought}</{tag}>{answer}",
    "<{tag}>\n{thought}\n</{tag}>\n\n{answer}",
)
"""How an answer brings its reasoning along."""
CUT = 5
"""Characters at either end of the reasoning whose loss is looked for."""


def reasoning_whole(case: Case) -> Iterator[Violation]:
    """Each answer of the conversation, the last and an earlier one, with reasoning of the probe in its text."""
    tag = next((tag for tag in TAGS if f"</{tag}>" in case.subject.source), None)
    if tag is None:
        return
    answers = [i for i, m in enumerate(case.messages) if m["role"] == "assistant" and not m.get("tool_calls")]
    for index in answers[-2:]:
        for form in FORMS:
            inline = form.format(tag=tag, thought=canaries.REASONING, answer=canaries.ANSWER)
            found = list(_judged(case, _with(case, index, inline), tag))
            yield from found
            if found:
                return
        if index + 1 < len(case.messages):  # a last answer some servers take for one to be continued
            yield from _twice(case, index, tag)


def _judged(case: Case, chat: Chat, tag: str) -> Iterator[Violation]:
    """Where the reasoning is taken out, it is asked for once more with the switches that keep it."""
    text = case.subject.render(chat).text
    kept: Any = {**chat, "variables": {**case.subject.on.keeping, **chat.get("variables", {})}}
    if text is not None and canaries.REASONING[CUT:-CUT] not in text and kept["variables"] != chat.get("variables", {}):
        chat, text = kept, case.subject.render(kept).text
    if text is None or canaries.REASONING in text:
        return
    thought = canaries.REASONING
    for part, what in ((thought[CUT:], "beginning"), (thought[:-CUT], "end")):
        if part in text:
            said = f"of reasoning that an answer brings along between <{tag}> and </{tag}> the {what} is cut off"
            yield Violation("reasoning-whole", "RS105", what, said, chat, thought, text)


def _twice(case: Case, index: int, tag: str) -> Iterator[Violation]:
    """A completion behind a prompt that opens the block itself: sent back as it is, it makes no second block."""
    plain = _with(case, index, canaries.ANSWER)
    asked = {**plain, "messages": plain["messages"][:index], "add_generation_prompt": True}
    prompt = case.subject.render(asked).text  # type: ignore[arg-type]  # the keys of a Chat
    if prompt is None or not prompt.rstrip().endswith(f"<{tag}>"):
        return
    chat = _with(case, index, f"{canaries.REASONING}\n</{tag}>\n\n{canaries.ANSWER}")
    text = case.subject.render(chat).text
    if text is None or canaries.REASONING not in text or canaries.ANSWER not in text:
        return
    at = text.index(canaries.REASONING)
    block = re.compile(rf"<{tag}>\s*</{tag}>\s*(?:<{tag}>\s*)?\Z")
    before = block.search(text[:at])
    if before is not None:
        said = "an answer sent back as it was generated, with the end of its reasoning, gets an empty block before it"
        yield Violation("reasoning-whole", "RS105", "second block", said, chat, text[: at - len(before[0])], text)


def _with(case: Case, index: int, content: str) -> Chat:
    form = case.subject.on.form
    message: Any = {"role": "assistant", "content": content}
    made = form.chat([message])["messages"][-1]
    messages = [*case.messages[:index], made, *case.messages[index + 1 :]]
    return {**case.chat, "messages": messages}


LAWS = (
    Law(
        "reasoning-whole",
        ("RS105",),
        "reasoning inside an answer stays whole or goes whole",
        reasoning_whole,
        heavy=True,
    ),
)
