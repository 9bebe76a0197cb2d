"""The product fuzzed: whatever the template, nothing but our errors leaves, limits hold, spans are the text.

A few hundred examples here; `python -m tests.test_fuzzed_templates EXAMPLES` asks for more. That the transformers
dialect equals the reference is asked by `tests/test_equals_reference.py`.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from jinjarun import JinjarunError, Limits, Template
from jinjarun.serving.caps import chat_template_caps
from probes import Supports, conversations
from probes.chats.corpus import corpus_folder
from probes.chats.messages import Chat
from tests.bench.planted import family
from tests.template_strategies import contexts, templates

LIMITS = Limits(steps=20_000, string_bytes=100_000, output_bytes=100_000)
DIALECTS = ("llama.cpp", "transformers")
FAMILIES = sorted(folder.name for folder in corpus_folder().iterdir() if folder.name != "base-model-without-template")
ATTACKS = (
    "{{ ''.__class__ }}",
    "{{ messages | attr('__len__') }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{{ 'a' * 999999999 }}",
    "{{ 9 ** (9 ** 9) }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{{ '%999999999d' % 1 }}",
    "{% set x = [] %}{{ x.append(x) }}{{ x }}",
    "{{ raise_exception('no') }}",
    "{{ messages.__init__.__globals__ }}",
    "{{ cycler.__init__ }}",
    "{% set ns = namespace() %}{% set ns.ns = ns %}{{ ns }}",
)
EVERYTHING = Supports(
    text_parts=True, second_system=True, late_system=True, arguments=("object", "string"), reasoning="reasoning_content"
)

some = settings(max_examples=100, deadline=None, database=None, suppress_health_check=list(HealthCheck))


def check(source: str, dialect: str, context: dict[str, Any]) -> None:
    """Only our errors leave; the spans cover the text; the same again gives the same; limits bound the cost."""
    before = repr(context)
    try:
        template = Template(source, dialect, LIMITS)
        plain = template.render_context(context, now=0)
    except JinjarunError as error:
        failure: JinjarunError | None = error
    else:
        failure = None
    assert repr(context) == before
    if failure is not None:
        assert failure.to_dict()["message"]
        return
    assert plain.cost <= LIMITS.steps
    assert len(plain.data) <= LIMITS.output_bytes
    try:
        watched = template.render_context(context, now=0, spans=True)
    except JinjarunError as error:
        pytest.fail(f"only with spans: {error}")
    assert watched.text == plain.text == "".join(span.text for span in watched.spans)
    at = 0
    for span in watched.spans:
        assert (span.start, span.end) == (at, at + len(span.text))
        at = span.end


@st.composite
def mutated(draw: st.DrawFn, sources: list[str]) -> str:
    """A template with pieces cut out, doubled, moved, or replaced by pieces of another or by an attack."""
    source = draw(st.sampled_from(sources))
    for _ in range(draw(st.integers(1, 3))):
        start = draw(st.integers(0, len(source)))
        end = min(len(source), start + draw(st.sampled_from([1, 2, 5, 20, 80])))
        other = draw(st.sampled_from(sources))
        at = draw(st.integers(0, len(other)))
        piece = draw(st.sampled_from(["", source[start:end] * 2, other[at : at + 40], *ATTACKS, "{%", "}}", "-", "("]))
        source = source[:start] + piece + source[end:]
    return source


@some
@given(templates(), contexts(), st.sampled_from(DIALECTS))
def test_made_up_templates(source: str, context: dict[str, Any], dialect: str) -> None:
    check(source, dialect, context)


def request_context(chat: Chat) -> dict[str, Any]:
    tools = chat.get("tools")
    context: dict[str, Any] = {"messages": chat["messages"], "bos_token": "<s>", "eos_token": "</s>"}
    return context | ({} if tools is None else {"tools": tools}) | {"add_generation_prompt": True}


SOURCES = [family(name)[0] for name in FAMILIES]


@some
@given(mutated(SOURCES), conversations(EVERYTHING), st.sampled_from(DIALECTS))
def test_mutated_templates(source: str, chat: Chat, dialect: str) -> None:
    check(source, dialect, request_context(chat))


@some
@given(st.sampled_from(SOURCES), conversations(EVERYTHING), st.sampled_from(DIALECTS))
def test_healthy_templates(source: str, chat: Chat, dialect: str) -> None:
    check(source, dialect, request_context(chat))


@pytest.mark.parametrize("source", ATTACKS)
@pytest.mark.parametrize("dialect", DIALECTS)
def test_attacks(source: str, dialect: str) -> None:
    check(source, dialect, {"messages": [{"role": "user", "content": "Hi"}], "tools": None})


@settings(some, max_examples=30)
@given(mutated(SOURCES))
def test_caps_of_mutated_templates(source: str) -> None:
    with suppress(JinjarunError):
        chat_template_caps(source)


def main() -> None:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 5000
    for law in (test_made_up_templates, test_mutated_templates, test_healthy_templates, test_caps_of_mutated_templates):
        settings(some, max_examples=examples)(law)()
        print(f"{law.__name__}: {examples} examples")


if __name__ == "__main__":
    main()
