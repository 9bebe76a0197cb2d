"""A `generation` block leaves out the text that ends the turn, or covers what others said.

What it does: renders a conversation of two answers with the places of `{% generation %}` blocks, and looks whether both
answers are inside, what ends them too, and nothing of the user.

Why it is bad: training counts only what the mask covers. A model that is never trained on the end of its turn does not
end it; one that is trained on questions asks them.

Example: `{% generation %}{{ message.content }}{% endgeneration %}<|im_end|>`.

Use instead: the end of the turn inside of the block, the header outside.

References: `return_assistant_tokens_mask` of `apply_chat_template` in transformers 5.24.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError
from probes.chapters.endings import endings, markers_in
from probes.chats import canaries
from probes.chats.messages import say
from probes.rendering.renders import RAW
from probes.rules.base import Rule
from probes.rules.view import Asked, Hit

if TYPE_CHECKING:
    from jinjarun.template import Rendered
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.report import Severity
    from probes.rules.view import Facts, TemplateView

TAG = re.compile(r"\{%[-+]?\s*generation\b")
EOS = "{{ eos_token }}"
"""What stands for EOS in the shape where its text is not known, and here always."""
LAST = "The last word has the sora of 48271."


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    tag = TAG.search(facts.source)
    if tag is None or RAW not in view.paths:
        return []
    chat = _chat(view.form(RAW))
    rendered = rendered_with_mask(facts, chat)
    if rendered is None or canaries.ANSWER not in rendered.text or LAST not in rendered.text:
        return []
    covered = [rendered.text[start:end] for start, end in rendered.generations or ()]
    whole = "\0".join(covered)
    faults = []
    severity: Severity = "error"
    if canaries.ANSWER not in whole or LAST not in whole:
        faults.append("only part of the answers is covered" if covered else "no answer is covered")
    elif (end := _left_out(rendered, _closers(view)) or _opener_left_out(facts, rendered)) is not None:
        faults.append(f"{end!r}, which ends the turn, is left out")
    elif (end := _last_unended(rendered)) is not None:
        faults.append(f"{end!r} ends an earlier answer inside of its block, and nothing ends the last one")
        severity = "warning"
    if canaries.USER in whole or canaries.SECOND_USER in whole:
        faults.append("text of the user is covered")
    if not faults:
        return []
    line = facts.source.count("\n", 0, tag.start()) + 1
    asked = Asked(RAW, chat, facts.renders.render(RAW, chat), "written", (canaries.ANSWER,))
    message = f"the mask for training is wrong: {'; '.join(faults)}"
    return [
        Hit(
            message=message,
            engines=[RAW, "transformers:apply_chat_template"],
            line=line,
            evidence=[view.cite(asked)],
            severity="error" if len(faults) > 1 else severity,
            cause="generation mask",
        )
    ]


def _chat(form: Form) -> Chat:
    turns = [say("user", canaries.USER), say("assistant", canaries.ANSWER), say("user", canaries.SECOND_USER)]
    return form.chat([*turns, say("assistant", LAST)], add_generation_prompt=False)


def _closers(view: TemplateView) -> set[str]:
    """Markers that end a turn of the assistant, as the shape has them."""
    turn = view.shape.turns.get("assistant")
    eos = view.facts.renders.eos_token or EOS
    texts = [view.shape.end_of_turn.text or "", "" if turn is None else turn.close]
    return {marker.text for text in texts for marker in markers_in(text.replace(eos, EOS), frozenset({EOS}))}


def _left_out(rendered: Rendered, closers: set[str]) -> str | None:
    """The marker that ends one of the answers and is in no block."""
    text = rendered.text
    for answer in (canaries.ANSWER, LAST):
        at = text.rfind(answer) + len(answer)
        first = next(markers_in(text[at:], frozenset({EOS})), None)
        if first is None or first.text not in closers:
            continue
        end = at + first.end
        if not any(start <= at and end <= stop for start, stop in rendered.generations or ()):
            return first.text
    return None


def _opener_left_out(facts: Facts, rendered: Rendered) -> str | None:
    """The marker of the next turn where that alone ends an answer and it is in no block: GLM's models write it."""
    ending = next((one for one in endings(facts.renders) if one.after == "answer"), None)
    if ending is None or ending.closing or ending.opening is None:
        return None
    at = rendered.text.rfind(canaries.ANSWER) + len(canaries.ANSWER)
    found = next(markers_in(rendered.text[at:], frozenset({EOS})), None)
    if found is None or found.text != ending.opening:
        return None
    end = at + found.end
    return None if any(start <= at and end <= stop for start, stop in rendered.generations or ()) else found.text


def _last_unended(rendered: Rendered) -> str | None:
    """The marker that the block of the first answer ends with, where the block of the last ends with its text."""
    blocks = [rendered.text[start:end] for start, end in rendered.generations or ()]
    first = next((block for block in blocks if canaries.ANSWER in block), "")
    last = next((block for block in blocks if LAST in block), "")
    ends = list(markers_in(first.rpartition(canaries.ANSWER)[2], frozenset({EOS})))
    return ends[-1].text if ends and not last.rpartition(LAST)[2].strip() else None


def rendered_with_mask(facts: Facts, chat: Chat) -> Rendered | None:
    """With the places of the blocks, as transformers asks for them."""
    template = facts.renders.template("transformers")
    if isinstance(template, JinjarunError):
        return None
    context: dict[str, Any] = {"tools": None, "documents": None, "bos_token": facts.renders.bos_token}
    context |= {"eos_token": EOS, "add_generation_prompt": False}
    context |= {"messages": chat["messages"], **chat.get("variables", {})}
    try:
        return template.render_context(context, now=facts.renders.now, generations=True)
    except JinjarunError:
        return None


RULE = Rule(
    code="TR102",
    name="mask-misses-stop-token",
    severity="error",
    summary="A generation block leaves out the text that ends the turn, or covers text of others.",
    suggestion="put the end of the turn inside of the generation block, and nothing else than the model writes",
    check=check,
    triggers=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "{% endgeneration %}<|im_end|>\n{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}"
        "<|im_end|>{% endgeneration %}\n{% else %}{{ m.content }}<|im_end|>\n{% endif %}{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'assistant' %}<|im_start|>assistant\n{% generation %}{{ m.content }}"
        "<|im_end|>\n{% endgeneration %}{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endif %}"
        "{% endfor %}"
    ),
    documentation=__doc__,
)
