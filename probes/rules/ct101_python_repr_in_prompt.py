"""Python's way of writing a value reaches the prompt.

What it does: sends content null beside a call, arguments that are objects, lists, booleans and null, and tool schemas,
and looks for what only Python writes: `None`, `True`, `{'a': 1}`.

Why it is bad: models are trained on JSON. `None` is read as a word that somebody said, `{'a': 1}` is answered in kind
and no parser of tool calls reads it. llama.cpp writes these values in the same way, so every engine is hit.

Example: `{{ message.content }}` where content is null; `{{ tool }}` without `| tojson`.

Use instead: `{{ message.content or '' }}`; `{{ value | tojson }}` for whatever is no string.

References: the filter `tojson` of transformers' chat templates; `str()` of Python.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from probes.chats import canaries
from probes.rendering.outcomes import prints_nothing_as_text
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.chats.canaries import Form
    from probes.chats.messages import Beside, Chat
    from probes.rendering.input_form import PathObserver
    from probes.rules.view import Asked, Facts, TemplateView

VALUES: dict[str, Any] = {"gate_48211": True, "fence_48212": None, "path_48213": {"pond_48214": ["newt_48215", "eft"]}}
"""Arguments that JSON and Python write differently."""
PYTHON_CALL = re.compile(r"\b(?:gate_48211|fence_48212|path_48213)\s?=\s?(?:True|None|\{')")
"""A format whose calls are Python's, `f(gate=True)`: there True is what is meant."""


def asks(on: PathObserver) -> list[Chat]:
    if on.call_form is None:
        return [canaries.tools_without_system(on.form)]
    contents: tuple[Beside, ...] = ("null", "missing")
    silent = [canaries.one_call(on.call_form.but(beside=beside)) for beside in contents]
    return [canaries.tools_without_system(on.form), with_values(on.call_form), *silent]


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    return [*_null(view), *_arguments(view), *_schemas(view)]


def _null(view: TemplateView) -> list[Hit]:
    """Content null or absent beside a call, printed as a word."""
    plain = {one.path: one for one in view.ask_named(beside="empty")}
    known = {path for path, one in plain.items() if one.fate == "written" or view.calling(path) is not None}
    hits: list[Hit] = []
    for beside in ("null", "missing"):
        asked = [one for one in view.ask_named(beside=beside) if one.outcome.ok and one.path in known]
        bad = [one for one in asked if prints_nothing_as_text(one.text, plain[one.path].text)]
        good = [one for one in asked if one not in bad]
        if bad:
            what = "null" if beside == "null" else "that is missing"
            message = f"content {what} beside a call is printed as a word of Python"
            hits.append(view.hit(message, bad, good, severity="error", cause="null content beside calls"))
    return hits[:1]


def with_values(form: Form) -> Chat:
    """One call whose arguments are VALUES beside the usual one."""
    chat = canaries.one_call(form.but(arguments="object"))
    for message in chat["messages"]:
        for made in message.get("tool_calls", ()):
            inner = made if form.bare else made["function"]
            inner["arguments"] = {**inner["arguments"], **VALUES}
    return chat


def _arguments(view: TemplateView) -> list[Hit]:
    asked = [one for one in view.ask_calls(with_values, canaries.VALUE) if one.outcome.ok]
    asked = [one for one in asked if not PYTHON_CALL.search(_call(one))]
    printed = [one for one in asked if re.search(r"'(?:pond_48214|newt_48215|gate_48211)'", _call(one))]
    lost = [one for one in asked if one.fate == "written" and "newt_48215" not in one.text]
    objects = [one for one in asked if one in printed or one in lost]
    hits = []
    if objects:
        good = [one for one in asked if one not in objects]
        became = [how for how, found in (("printed as Python writes them", printed), ("left out", lost)) if found]
        message = f"arguments that are objects or lists are {', or '.join(became)}"
        hits.append(view.hit(message, objects, good, severity="error", cause="arguments of calls"))
    words = [one for one in asked if one not in objects and re.search(r"\b(?:True|None)\b", _call(one))]
    if words and not objects:
        good = [one for one in asked if one not in words]
        message = "arguments true and null are printed as True and None"
        hits.append(view.hit(message, words, good, severity="warning", cause="scalar arguments of calls"))
    return hits


def _call(asked: Asked) -> str:
    """The text of the call: from its first known argument to the result."""
    text = asked.text
    start = text.rfind(canaries.VALUE)
    first = min((at for key in VALUES if (at := text.rfind(key)) >= 0), default=start)
    end = text.find(canaries.RESULT, start)
    return text[max(0, min(start, first) - 40) : end if end >= 0 else len(text)]


def _schemas(view: TemplateView) -> list[Hit]:
    asked = view.ask(canaries.tools_without_system, canaries.TOOL)
    bad = [one for one in asked if re.search(rf"'{canaries.PARAMETER}'\s*:\s*\{{", one.text)]
    good = [one for one in asked if one.fate == "written" and one not in bad]
    message = "tool schemas are printed as Python writes them"
    return [view.hit(message, bad, good, severity="error", cause="tool schemas")] if bad else []


RULE = Rule(
    code="CT101",
    name="python-repr-in-prompt",
    severity="error",
    summary="None, True or {'a': 1} reaches the prompt from null, booleans, lists or objects.",
    suggestion="write values that are no strings with tojson, and nothing for null",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments }}</call>{% endfor %}"
        "<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}"
        "{% for c in m.tool_calls or [] %}<call>{{ c.function.name }} {{ c.function.arguments | tojson }}</call>"
        "{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.content %}{{ m.content }}{% endif %}"
        "{% for c in m.tool_calls or [] %}\n<function={{ c.function.name }}>\n"
        "{% for name, value in c.function.arguments | items %}<parameter={{ name }}>\n"
        "{{ value if value is string else value | tojson }}\n</parameter>\n{% endfor %}</function>{% endfor %}"
        "<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
    asks=asks,
)
