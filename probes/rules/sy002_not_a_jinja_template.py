"""What stands where a template should is none.

What it does: recognises what is put there by mistake: a Go template (Ollama), a template as a JSON string or with JSON
escapes, the name of a format that llama.cpp has built in, the path of a file, nothing at all.

Why it is bad: some of these even render. The name `chatml` is a template that prints `chatml`, whatever is said; then
the model answers without having seen a word of the conversation.

Example: `{{ if .System }}{{ .System }}{{ end }}`, taken from a Modelfile.

Use instead: the Jinja template of the original model, as `chat_template` of its tokenizer_config.json holds it.

References: text/template of Go; `--chat-template` of llama.cpp, which takes names and files beside templates.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jinjarun.sources.not_a_template import not_a_template
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    found = not_a_template(facts.source)
    if found is None:
        return []
    what, advice = found
    return [Hit(message=f"the text {what}", engines=list(facts.renders.paths), suggestion=advice)]


RULE = Rule(
    code="SY002",
    name="not-a-jinja-template",
    severity="error",
    summary="The slot holds a Go template, a JSON string, the name of a built-in format, a path, or nothing.",
    suggestion="put the Jinja template of the original model there",
    check=check,
    triggers="{{ if .System }}<|system|>{{ .System }}{{ end }}<|user|>{{ .Prompt }}",
    repaired="{% if system %}<|system|>{{ system }}{% endif %}<|user|>{{ messages[0].content }}",
    healthy="{{ bos_token }}{% for m in messages %}[INST] {{ m['content'] }} [/INST]{% endfor %}",
    documentation=__doc__,
)
