"""A switch treats the string "false" or the number 0 otherwise than false.

What it does: takes the switches of the contract whose value true or false changes the prompt, and tries `"false"` and
`0` in place of false.

Why it is bad: values come from command lines, environment variables and YAML. `"false"` is a string that is not empty,
so it turns on what somebody meant to turn off, and nothing says so.

Example: `{% if enable_thinking is defined and enable_thinking is false %}`, `{% if enable_thinking %}`.

Use instead: send booleans of JSON; a template may also ask `{% if enable_thinking in [false, 'false', 0] %}`.

References: `chat_template_kwargs` of llama-server and vLLM, which pass values on as they come.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.chats.messages import say
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Chat
    from probes.rules.view import Facts, TemplateView

MOST_SWITCHES = 3
STAND_INS: dict[str, Any] = {"the string 'false'": "false", "the number 0": 0}


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    if view.loaded is None or facts.contract is None:
        return []
    names = [one.name for one in facts.contract.variables if one.kind == "boolean"]
    return [hit for name in names[:MOST_SWITCHES] for hit in _switch(view, view.loaded, name)]


def _switch(view: TemplateView, path: str, name: str) -> list[Hit]:
    def text(value: Any) -> str | None:
        return view.facts.renders.render(path, _with(view.form(path), {name: value})).text

    off, on = text(False), text(True)
    absent = view.facts.renders.render(path, canaries.user_only(view.form(path))).text
    if off is None or on is None or off == on:
        return []
    wrong = [what for what, value in STAND_INS.items() if text(value) != off]
    if not wrong:
        return []
    default = "true" if absent == on else "false" if absent == off else "neither"
    message = (
        f"{name}: {' and '.join(wrong)} do{'es' if len(wrong) == 1 else ''} not count as false (default: {default})"
    )
    asked = view.ask_path(path, _with(view.form(path), {name: "false"}), canaries.USER)
    return [view.hit(message, [asked], severity="info", cause=f"switch {name}")]


def _with(form: Form, variables: dict[str, Any]) -> Chat:
    return form.chat([say("user", canaries.USER)], variables=variables)


RULE = Rule(
    code="RS104",
    name="switch-not-boolean-safe",
    severity="info",
    summary="A switch treats the string 'false' or 0 otherwise than false; gives default and effect.",
    suggestion="send true and false as JSON has them, never as strings",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking %}<think>{% endif %}{% endif %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|assistant|>{% if enable_thinking in [true, 'true', 1] %}<think>{% endif %}"
        "{% endif %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    documentation=__doc__,
)
