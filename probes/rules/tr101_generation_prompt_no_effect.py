"""`add_generation_prompt` changes nothing, where the model's turns have a header.

What it does: renders a question with and without a generation prompt and compares; and looks for the header of the
assistant's turn in the history. Where there is none (`[/INST]` is followed by the answer itself) it is only a fact.

Why it is bad: without the header the model may go on as the user, or writes the header itself, into its answer. A
header that always stands there ends every training text with a turn that was never spoken.

Example: a template whose last lines, `{% if add_generation_prompt %}...`, were lost.

Use instead: `{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}` at the end.

References: `add_generation_prompt` of `apply_chat_template` in transformers; llama-server always sets it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters.endings import markers_in
from probes.chats import canaries
from probes.rendering.renders import LLAMA_SERVER, SGLANG
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.report import Severity
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    without = {one.path: one.text for one in view.ask(_without, canaries.USER)}
    asked = [one for one in view.ask(canaries.user_only, canaries.USER) if one.fate == "written"]
    asked = [one for one in asked if one.path not in (LLAMA_SERVER, SGLANG)]  # which set it themselves
    equal = [one for one in asked if one.text == without.get(one.path)]
    if not equal:
        return []
    good = [one for one in asked if one not in equal]
    header = view.shape.turns["assistant"].open if "assistant" in view.shape.turns else ""
    severity: Severity = "info"
    message = "add_generation_prompt changes nothing; the model's turns have no header"
    if list(markers_in(header)) or header.strip():
        severity = "warning"
        always = equal[0].text.rstrip().endswith(header.strip())
        what = "the header of the model's turn is always there" if always else "the model's turn is not opened"
        message = f"add_generation_prompt changes nothing: {what}"
    return [view.hit(message, equal, good, severity=severity, cause="generation prompt")]


def _without(form: Form) -> Chat:
    return {**canaries.user_only(form), "add_generation_prompt": False}


RULE = Rule(
    code="TR101",
    name="generation-prompt-no-effect",
    severity="warning",
    summary="add_generation_prompt changes nothing where a turn header is expected.",
    suggestion="write the header of the assistant's turn where add_generation_prompt is true",
    check=check,
    triggers="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    repaired=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}<|start_header_id|>{{ m.role }}<|end_header_id|>\n\n{{ m.content }}<|eot_id|>"
        "{% endfor %}{% if add_generation_prompt %}<|start_header_id|>assistant<|end_header_id|>\n\n{% endif %}"
    ),
    documentation=__doc__,
)
