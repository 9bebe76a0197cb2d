"""The template writes a system prompt of its own where the client sends none.

What it does: compares a request with and without a system message; the text that only the latter has is the default
prompt. It is quoted, and an empty system message is tried as the way to be rid of it.

Why it is bad: it is not bad, but somebody who measures a model, pays by the token or wonders about an answer must know
what stands before the conversation.

Example: `You are Qwen, created by Alibaba Cloud. You are a helpful assistant.`

Use instead: nothing needs to be changed; send a system message of your own where the default is not wanted.

References: Qwen2.5's and Falcon's templates; many others have none.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    shown = view.shape.system
    if shown is None or not shown.default_text or view.bare is None:
        return []
    text = shown.default_text
    asked = [one for one in view.ask(canaries.user_only, canaries.USER) if text.strip() in one.text]
    if not asked:
        return []
    form = view.form(view.bare)
    empty = facts.renders.render(view.bare, form.chat([say("system", ""), say("user", canaries.USER)]))
    way = "an empty system message removes it"
    if empty.text is None:
        way = "an empty system message is refused"
    elif text.strip() in empty.text:
        way = "an empty system message does not remove it"
    message = f"without a system message {quote(text.strip())!r} is written; {way}"
    return [view.hit(message, asked, severity="info")]


RULE = Rule(
    code="RL106",
    name="default-system-prompt",
    severity="info",
    summary="Text is added when no system message is sent; says which, and whether an empty one removes it.",
    suggestion="send a system message of your own where this text is not wanted",
    check=check,
    triggers=(
        "{% if messages[0].role != 'system' %}<|im_start|>system\nYou are a helpful assistant.<|im_end|>\n{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    repaired="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    healthy=(
        "<bos>{% for m in messages %}<start_of_turn>{{ 'model' if m.role == 'assistant' else 'user' }}\n"
        "{{ m.content }}<end_of_turn>\n{% endfor %}"
    ),
    documentation=__doc__,
)
