"""Renders that share all but the statement that opens the model's turn."""

import pytest

from jinjarun.errors import JinjarunError
from jinjarun.template import Rendered, Template
from probes.chats.named import CHATS
from tests.families import DIALECTS, WITH_TEMPLATE, family

VALUES = (True, None, False)
HISTORY = "{% for m in messages %}{{ m.content }}{% endfor %}"
OPENING = "{% if add_generation_prompt %}{{ 'A:' }}{% endif %}"


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize(
    ("source", "last"),
    [
        (HISTORY + OPENING, True),
        (HISTORY + "{% if add_generation_prompt and not x.y[0] is defined %}{{ 'A' ~ (x or 'B') }}{% endif %}", True),
        (HISTORY + OPENING + "!", False),
        ("{% if add_generation_prompt %}{% endif %}" + HISTORY + OPENING, False),
        ("{% macro m() %}{{ add_generation_prompt }}{% endmacro %}" + HISTORY + OPENING, False),
        ("{% set add_generation_prompt = true %}" + HISTORY + OPENING, False),
        (HISTORY + "{% if add_generation_prompt %}{% set x = 1 %}{% endif %}", False),
        (HISTORY + "{% if add_generation_prompt %}{{ messages.pop() }}{% endif %}", False),
        (HISTORY + "{% if add_generation_prompt %}{{ messages|last }}{% endif %}", False),
        (HISTORY + "{% if add_generation_prompt and 1 in messages %}{% endif %}", False),
        (HISTORY, False),
    ],
)
def test_the_last_statement_opens_the_turn(source: str, dialect: str, last: bool) -> None:
    assert Template(source, dialect).opens_last is last


def test_a_block_may_read_it_too() -> None:
    source = "{% block b %}{{ add_generation_prompt }}{% endblock %}" + HISTORY + OPENING
    assert not Template(source, "transformers").opens_last


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_openings_are_renders(name: str, dialect: str) -> None:
    template = Template(family(name).source, dialect)
    if not template.opens_last:
        return
    for build in CHATS.values():
        chat = build()
        context = {"messages": chat["messages"], "tools": chat.get("tools"), "add_generation_prompt": True}
        answers = template.render_openings(context, VALUES, now=0)
        for value in VALUES:
            opened = {**context, "add_generation_prompt": value}
            if value is None:
                del opened["add_generation_prompt"]
            assert _told(answers[value]) == _told(_rendered(template, opened))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_opening_fails_for_itself(dialect: str) -> None:
    source = "{{ m }}{% if not add_generation_prompt %}{{ m - none }}{% endif %}"
    answers = Template(source, dialect).render_openings({"m": "Hi"}, VALUES)
    assert [isinstance(answers[value], JinjarunError) for value in VALUES] == [False, True, True]
    assert _told(answers[True]) == ("Hi", b"\0")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_that_fails_is_every_answer(dialect: str) -> None:
    answers = Template("{{ 1 - none }}" + OPENING, dialect).render_openings({}, VALUES)
    assert all(isinstance(answer, JinjarunError) for answer in answers.values())


def _rendered(template: Template, context: dict[str, object]) -> Rendered | JinjarunError:
    try:
        return template.render_context(context, now=0)
    except JinjarunError as error:
        return error


def _told(answer: Rendered | JinjarunError) -> tuple[object, ...]:
    if isinstance(answer, JinjarunError):
        return type(answer), answer.message, answer.line, answer.column
    return answer.text, answer.reached
