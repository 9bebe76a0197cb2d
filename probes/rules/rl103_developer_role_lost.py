"""A developer message vanishes, or is printed with a role that the template does not know.

What it does: sends a message of the role `developer`, the newer name for instructions, and looks for its text; where it
is written, under which role.

Why it is bad: clients that follow OpenAI's newer models send it in place of a system message. Where it is dropped the
instructions are gone; printed as `<|im_start|>developer` to a model that was trained on `system` they weigh little.

Example: `<|im_start|>{{ m.role }}` for every role that a client may think of.

Use instead: treat `developer` as `system`: `{% set role = 'system' if m.role == 'developer' else m.role %}`.

References: llama-server renames the role for every template but GPT-OSS; transformers passes it on as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rendering.outcomes import is_unknown_role
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.rules.view import Asked, Facts


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = view.ask(canaries.developer, canaries.DEVELOPER)
    good = [one for one in fates(asked, "written") if not _strange(facts, one)]
    if lost := fates(asked, "lost"):
        message = "a developer message leaves no trace and no error"
        return [view.hit(message, lost, good, severity="warning", cause="developer role")]
    if strange := [one for one in fates(asked, "written") if _strange(facts, one)]:
        message = "a developer message is written under a role that the template names nowhere"
        return [view.hit(message, strange, good, severity="warning", cause="developer role")]
    return []


def _strange(facts: Facts, asked: Asked) -> bool:
    """The word is in the prompt only because the request holds it: the source does not know it."""
    before = asked.text[: asked.text.find(canaries.DEVELOPER)]
    return is_unknown_role(facts.source, before)


RULE = Rule(
    code="RL103",
    name="developer-role-lost",
    severity="warning",
    summary="Role developer vanishes, or is printed as a role that the model does not know.",
    suggestion="treat the role developer as system",
    check=check,
    triggers="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    repaired=(
        "{% for m in messages %}<|im_start|>{{ 'system' if m.role == 'developer' else m.role }}\n"
        "{{ m.content }}<|im_end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'developer' %}<|start|>developer<|message|># Instructions\n\n"
        "{{ m.content }}<|end|>{% else %}<|start|>{{ m.role }}<|message|>{{ m.content }}<|end|>{% endif %}{% endfor %}"
    ),
    documentation=__doc__,
)
