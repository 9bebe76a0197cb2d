"""Texts that stand where a template should and are none: what each is, and what to do about it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

# fmt: off
BUILTINS = frozenset(
    [
        "bailing", "bailing-think", "bailing2", "chatglm3", "chatglm4",
        "chatml", "command-r", "deepseek", "deepseek2", "deepseek3", "exaone-moe", "exaone3", "exaone4", "falcon3",
        "gemma", "gigachat", "glmedge", "gpt-oss", "granite", "granite-4.0", "granite-4.1", "grok-2",
        "hunyuan-dense", "hunyuan-moe", "hunyuan-vl", "kimi-k2", "llama2", "llama2-sys", "llama2-sys-bos",
        "llama2-sys-strip", "llama3", "llama4", "megrez", "minicpm", "mistral-v1", "mistral-v3",
        "mistral-v3-tekken", "mistral-v7", "mistral-v7-tekken", "monarch", "openchat", "orion", "pangu-embedded",
        "phi3", "phi4", "rwkv-world", "seed_oss", "smolvlm", "solar-open", "vicuna", "vicuna-orca", "yandex",
        "zephyr",
    ]
)
# fmt: on
"""Names that llama.cpp's `--chat-template` takes in place of a template (src/llama-chat.cpp, LLM_CHAT_TEMPLATES)."""

_GO = re.compile(
    r"""
    \{\{-?\s*
    (?: (?:else\s+)?(?:if|range|with|template|block|define|and|or|not|eq|ne|len|index|json|print|printf)\b [^{}]*? )?
    (?<=[\s({-]) (?: \.[A-Z] | \$[A-Za-z_.]* \s*(?:,|:=) | \$\.[A-Z] )
    """,
    re.VERBOSE,
)
"""An action of Go's text/template that reads an exported field (`.Prompt`) or a variable. No Jinja expression begins
with a dot, or has one after a space."""

_BRACE = re.compile(r"\{[{%]|[%}]\}")
_STRING = re.compile(r"'(?:[^'\\]|\\.?)*+(?:'|\Z)", re.DOTALL)
_PATH = re.compile(r"(?:[A-Za-z]:)?[^\s{}<>]*(?:[\\/][^\s{}<>]+|\.(?:jinja2?|j2|json|gguf|txt))")
_PATH_CHARS = 1_024


def not_a_template(text: str) -> tuple[str, str] | None:
    """(what the text is, what to do), or None where it may well be a template.

    Only what cannot be meant as Jinja is recognised: text without any tag is a template that prints itself.
    """
    bare = text.strip()
    if not bare:
        return "is empty", "remove the key or the file, or write the template into it"
    if "{%" not in text and _GO.search(text):
        return "is a Go template, as Ollama's Modelfiles hold them", "take the Jinja template of the original model"
    if _is_json_string(bare):
        return (
            "is a template as a JSON string, in quotes and with escapes",
            'decode it, for instance with Python\'s json.loads or "jq -r ."',
        )
    if _is_escaped(bare):
        return "is a template with JSON escapes and without the quotes", "decode it as the inside of a JSON string"
    if bare in BUILTINS:
        return (
            f"is {bare!r}, the name of a format that is built into llama.cpp",
            f"write out the template, or run it as --chat-template {bare} in llama.cpp",
        )
    if len(bare) <= _PATH_CHARS and _PATH.fullmatch(bare):
        return "is the path of a file", "give that file itself, or put its content here"
    return None


def _is_json_string(bare: str) -> bool:
    if not (len(bare) > 1 and bare[0] == bare[-1] == '"'):
        return False
    try:
        inner = json.loads(bare)
    except ValueError:
        return False
    return isinstance(inner, str) and ("{{" in inner or "{%" in inner)


def _is_escaped(bare: str) -> bool:
    r"""Whether a tag has a backslash outside of a string (no Jinja has) and it reads as the inside of a JSON string."""
    if "\\" not in bare or not any("\\" in _STRING.sub("", tag) for tag in _tags(bare)):
        return False
    try:
        json.loads(f'"{bare}"')
    except ValueError:
        return False
    return True


def _tags(text: str) -> Iterator[str]:
    """What stands between the braces, in one pass however they are nested or left open."""
    start: int | None = None
    for brace in _BRACE.finditer(text):
        if brace[0][0] == "{":
            start = brace.end() if start is None else start
        elif start is not None:
            yield text[start : brace.start()]
            start = None
