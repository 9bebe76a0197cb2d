from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from jinjarun.sources import not_a_template, open_source
from tests.sources.support import SHARED, TEMPLATE, needs_shared, unusable, write

if TYPE_CHECKING:
    from pathlib import Path

GO = "is a Go template"
JSON = "is a template as a JSON string"
ESCAPED = "is a template with JSON escapes"
NAME = "the name of a format that is built into llama.cpp"
PATH = "is the path of a file"


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "is empty"),
        (" \n\t", "is empty"),
        ("{{ .Prompt }}", GO),
        ("{{- if .System }}<|system|>{{ .System }}{{ end }}{{ .Prompt }}", GO),
        ("{{ range .Messages }}{{ .Content }}{{ end }}", GO),
        ("{{- range $i, $_ := .Messages }}x{{ end }}", GO),
        ("{{ $last := 1 }}", GO),
        ('{{ if (eq .Role "user") }}u{{ end }}', GO),
        ("{{ if and .A .B }}x{{ else if .C }}y{{ end }}", GO),
        ("{{ json .Tools }}", GO),
        (json.dumps(TEMPLATE), JSON),
        (json.dumps('{% if messages[0]["role"] == "user" %}\n{% endif %}') + "\n", JSON),
        (json.dumps('{% if messages[0]["role"] == "user" %}\n{% endif %}')[1:-1], ESCAPED),
        ("chatml", NAME),
        ("llama2-sys-bos\n", NAME),
        ("mistral-v7-tekken", NAME),
        ("chat_template.jinja", PATH),
        ("./templates/chat.jinja", PATH),
        ("/models/llama/chat", PATH),
        ("C:\\models\\chat.jinja", PATH),
        ("tokenizer_config.json", PATH),
    ],
)
def test_what_it_is(text: str, what: str) -> None:
    found = not_a_template(text)
    assert found is not None
    assert what in found[0]
    assert found[1]


@pytest.mark.parametrize(
    "text",
    [
        TEMPLATE,
        "Hello",
        "{{ messages[0].content }}",
        "{{ not message.Content }}",
        "{% if x %}{{ .Prompt }}{% endif %}",
        r"{{ 'say \"hi\"\n' }}",
        r'{{ "a\nb" }}',
        r"{{ 'a\nb' }}\n",
        '"{{ x }}" and "{{ y }}"',
        "</s>",
        "User/Assistant {{ x }}",
        "{{ end }}",
    ],
)
def test_may_be_a_template(text: str) -> None:
    assert not_a_template(text) is None


@needs_shared
def test_no_real_template_is_taken_for_something_else() -> None:
    files = sorted((SHARED / "corpus" / "templates").glob("*.jinja"))
    assert len(files) > 500
    assert [file.name for file in files if not_a_template(file.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize(
    "piece", ["{{", "{{ if ", "{{-  ", "{% '\\", "'\\'", "{{ $", "/a", '"\\', "{{ ((((", "{{ not "]
)
def test_hostile_texts_cost_time_in_proportion(piece: str) -> None:
    """Were one quadratic, this test would not end."""
    text = piece * (400_000 // len(piece))
    not_a_template(text)
    not_a_template(f"{text}\\")


def test_a_source_says_what_stands_in_the_place(tmp_path: Path) -> None:
    folder = write(tmp_path, {"tokenizer_config.json": {"chat_template": [{"name": "default", "template": "chatml"}]}})
    source = open_source(folder)
    assert source.templates == {}
    error = unusable(source)
    assert error.details["place"] == "chat_template[0].template"
    assert error.details["path"].endswith("tokenizer_config.json")
    assert "--chat-template chatml" in error.details["hint"]
