"""Tool calls fail in one of the two forms of their arguments.

What it does: sends the same call with its arguments as an object and as the JSON string that OpenAI's API uses, on each
path, and says which form works.

Why it is bad: clients send back what the API gave them, a string; the templates' own documentation speaks of objects.
Whoever sends the other form gets an error at the first call in the history.

Example: `{% for key, value in call.function.arguments.items() %}`; `'<call>' + call.function.arguments`.

Use instead: a test: `{% if arguments is string %}` print it as it is, otherwise go through it or use `tojson`.

References: llama-server reads the string into an object for templates that need one (`supports_object_arguments`);
vLLM always does; transformers passes on what it gets, and its guide wants objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chats import canaries
from probes.rules.base import Rule
from probes.rules.view import Hit, fates

if TYPE_CHECKING:
    from probes.rules.view import Facts

FORMS = {"string": "a JSON string", "object": "an object"}


def check(facts: Facts) -> list[Hit]:
    view = facts.view
    asked = {form: view.ask_calls(canaries.one_call, canaries.VALUE, arguments=form) for form in FORMS}
    hits = []
    for form, other in (("string", "object"), ("object", "string")):
        failed = fates(asked[form], "raised")
        works = {one.path for one in fates(asked[other], "written")}
        failed = [one for one in failed if one.path in works]
        if failed:
            error = failed[0].error
            message = f"arguments as {FORMS[form]} fail: {error}; as {FORMS[other]} they work"
            good = fates(asked[form], "written")
            suggestion = f"send arguments as {FORMS[other]}, or let the template take both"
            hit = view.hit(message, failed, good, severity="error", suggestion=suggestion, cause=f"arguments as {form}")
            hits.append(hit)
    return hits


RULE = Rule(
    code="TL102",
    name="argument-form-raises",
    severity="error",
    summary="Tool-call arguments as a JSON string, or as an object, fail; says which form works.",
    suggestion="let the template take arguments of both forms",
    check=check,
    triggers=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.name }}{% for key, value in c.function.arguments.items() %} {{ key }}={{ value }}"
        "{% endfor %}</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    repaired=(
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        "<call>{{ c.function.name }}{% if c.function.arguments is string %} {{ c.function.arguments }}{% else %}"
        "{% for key, value in c.function.arguments.items() %} {{ key }}={{ value }}{% endfor %}{% endif %}"
        "</call>{% endfor %}<|end|>\n{% endfor %}"
    ),
    healthy=(
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content or '' }}{% for c in m.tool_calls or [] %}"
        '<tool_call>\n{"name": "{{ c.function.name }}", "arguments": '
        "{% if c.function.arguments is string %}{{ c.function.arguments }}{% else %}"
        "{{ c.function.arguments | tojson }}{% endif %}}\n</tool_call>{% endfor %}<|im_end|>\n{% endfor %}"
    ),
    documentation=__doc__,
)
