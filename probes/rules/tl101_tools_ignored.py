"""Tools that are offered leave no trace in the prompt.

What it does: sends the same request with and without two tools and compares the prompts.

Why it is bad: the client offers tools, the server takes them, and the model never hears of them. It answers that it
cannot do such a thing, or invents a format of its own.

Example: a template that never reads `tools`, or keeps its form for tools in another template, `tool_use`.

Use instead: print the schemas where the model was trained to see them; or refuse: `raise_exception('no tools here')`.

References: `tools` of OpenAI's chat API; `supports_tools` of llama-server's `/props`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Asked, Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts, TemplateView


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    ignored: list[Asked] | None = None
    for build, without, bare in (
        (canaries.tools_without_system, canaries.user_only, False),
        (canaries.tools_offered, canaries.system_user, False),
        (canaries.tools_offered, canaries.system_user, True),
    ):
        asked = view.ask(build, canaries.TOOL, bare=bare)
        plain = {one.path: one.text for one in view.ask(without, canaries.USER)}
        equal = [one for one in asked if one.outcome.turned_away or (one.outcome.ok and one.text == plain[one.path])]
        ignored = equal if ignored is None else [one for one in ignored if one.path in {e.path for e in equal}]
    if not ignored:
        return []
    message, suggestion = "the tools that are offered change nothing", None
    if _reads_from_message(view):
        message += "; the template prints the key tools of a system message, as text"
        suggestion = (
            "with transformers put json.dumps(tools) into the system message as its key tools; llama-server drops the "
            "key, so no request reaches it"
        )
    return [view.hit(message, ignored, _written(view), severity="warning", suggestion=suggestion)]


def _reads_from_message(view: TemplateView) -> bool:
    """Whether the bare template prints what stands in the key `tools` of a system message."""
    if view.bare is None or "tools" not in view.facts.source:
        return False
    system = say("system", canaries.SYSTEM, tools=f'[{{"name": "{canaries.TOOL}"}}]')
    chat = view.form(view.bare).chat([system, say("user", canaries.USER)])
    return view.fate(view.bare, chat, canaries.TOOL) == "written"


def _written(view: TemplateView) -> list[Asked]:
    return [one for one in view.ask(canaries.tools_without_system, canaries.TOOL) if one.fate == "written"]


RULE = Rule(
    code="TL101",
    name="tools-ignored",
    severity="warning",
    summary="Renders with and without tools are equal.",
    suggestion="print the tool schemas, or refuse tools with raise_exception",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    repaired=(
        "{% if tools %}<|system|>{{ tools | tojson }}<|end|>\n{% endif %}"
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}{% if m.role == 'user' and loop.last and tools %}"
        "[AVAILABLE_TOOLS]{{ tools | tojson }}[/AVAILABLE_TOOLS]{% endif %}[INST]{{ m.content }}[/INST]{% endfor %}"
    ),
    documentation=__doc__,
)
