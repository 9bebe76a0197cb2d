"""Renders that share all but the statement that opens the model's turn."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
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
        (HISTORY + "{% if add_generation_prompt and 1 in messages %}{% endif %}", True),
        (HISTORY, False),
    ],
)
def test_the_last_statement_opens_the_turn(source: str, dialect: str, last: bool) -> None:
    assert Template(source, dialect).generation_prompt_is_last is last


def test_a_block_may_read_it_too() -> None:
    source = "{% block b %}{{ add_generation_prompt }}{% endblock %}" + HISTORY + OPENING
    assert not Template(source, "transformers").generation_prompt_is_last


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_openings_are_renders(name: str, dialect: str) -> None:
    template = Template(family(name).source, dialect)
    if not template.generation_prompt_is_last:
        return
    for build in CHATS.values():
        chat = build()
        context = {"messages": chat["messages"], "tools": chat.get("tools"), "add_generation_prompt": True}
        answers = template.render_generation_prompts(context, VALUES, now=0)
        for value in VALUES:
            opened = {**context, "add_generation_prompt": value}
            if value is None:
                del opened["add_generation_prompt"]
            assert _told(answers[value]) == _told(_rendered(template, opened))


@pytest.mark.parametrize("dialect", DIALECTS)
def test_each_opening_fails_for_itself(dialect: str) -> None:
    source = "{{ m }}{% if not add_generation_prompt %}{{ m - none }}{% endif %}"
    answers = Template(source, dialect).render_generation_prompts({"m": "Hi"}, VALUES)
    assert [isinstance(answers[value], JinjarunError) for value in VALUES] == [False, True, True]
    assert _told(answers[True]) == ("Hi", b"\0")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_history_that_fails_is_every_answer(dialect: str) -> None:
    answers = Template("{{ 1 - none }}" + OPENING, dialect).render_generation_prompts({}, VALUES)
    assert all(isinstance(answer, JinjarunError) for answer in answers.values())


SETUPS = (
    "{% set g = messages|map(attribute='role') %}",
    "{% set g = [messages|map(attribute='content')] %}",
    "{% set g = {'k': messages|selectattr('role')} %}",
    "{% set n = namespace(a=1) %}",
    "{% set n = namespace(g=messages|map(attribute='role')) %}",
    "{% set n = namespace() %}{% for m in messages %}{% set n.l = loop %}{% endfor %}",
    "{% set n = namespace() %}{% for m in messages|map(attribute='role') %}{% set n.l = loop %}{% break %}{% endfor %}",
    "{% set n = namespace() %}{% set n.n = [n] %}",
    "{% set c = cycler('a', 'b') %}",
    "{% set j = joiner() %}{{ j() }}",
    "{% set l = [1] %}{% set u = l.append(messages) %}{% set v = l.pop() %}",
    "{% set d = {} %}{% set d.x = d %}",
    "{% set u = nothing.at %}",
    "{% set u = {}[messages|map('string')] %}",
    "{% macro q(a) %}{{ a }}{% endmacro %}{{ q(1) }}{% macro r() %}{{ r() if x else '' }}{% endmacro %}",
    "{% set s %}{{ messages }}{% endset %}",
    "{% for m in messages recursive %}{{ m.role }}{% endfor %}",
    "{{ messages[9].role }}",
)
READS = (
    "g", "'user' is in(g)", "g is iterable", "'user' in g", "g[0]", "g.k", "n", "n.a", "n.l", "n.l.nextitem",
    "n.l.length",
    "n.l.index", "n['l']['last']", "n.n[0].n", "n.g", "'user' is in(n.g)", "c", "c.current", "j", "l", "d", "d.x", "u",
    "u.z", "v", "q", "s", "messages", "messages[0].role", "messages[0] - 1", "x ~ [g]", "'%s' % n.l", "g == g",
    "add_generation_prompt", "add_generation_prompt is defined", "none + 1",
)  # fmt: skip


@st.composite
def prompts(draw: st.DrawFn) -> str:
    """A history that leaves things behind, and a last statement that reads them."""
    history = "".join(draw(st.lists(st.sampled_from(SETUPS), max_size=4)))
    read = st.sampled_from(READS)
    body = st.lists(st.sampled_from([*(f"{{{{ {text} }}}}" for text in READS), "A"]), max_size=3).map("".join)
    test, other = draw(read), draw(read)
    kept = f"{{% if {test} %}}{draw(body)}{{% elif {other} %}}{draw(body)}{{% else %}}{draw(body)}{{% endif %}}"
    return f"{history}{{% if add_generation_prompt %}}{draw(body)}{{% else %}}{kept}{{% endif %}}"


@settings(max_examples=400, deadline=None)
@given(prompts(), st.sampled_from(DIALECTS), st.permutations(VALUES), st.sampled_from([500_000, 60, 30]))
def test_each_answer_is_that_of_a_render_alone(
    source: str, dialect: str, values: list[bool | None], steps: int
) -> None:
    try:
        template = Template(source, dialect, Limits(steps=steps))
    except JinjarunError:
        return
    context = {"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Yes"}], "x": 0}
    answers = template.render_generation_prompts(context, values, now=0)
    for value in values:
        alone = context if value is None else {**context, "add_generation_prompt": value}
        answer, expected = answers[value], _rendered(template, alone)
        if isinstance(expected, Rendered):
            assert answer == expected
        else:
            assert _told(answer) == _told(expected)


@pytest.mark.parametrize("spare", [0, 63, 64, 84, 85, 200])
def test_input_that_fits_only_without_the_variable(spare: int) -> None:
    context = {"m": "x" * 1000}
    template = Template(HISTORY + OPENING, "transformers", Limits(input_bytes=1000 + 65 + spare))
    answers = template.render_generation_prompts(context, VALUES, now=0)
    for value in VALUES:
        alone = context if value is None else {**context, "add_generation_prompt": value}
        assert _told(answers[value]) == _told(_rendered(template, alone))


def _rendered(template: Template, context: dict[str, object]) -> Rendered | JinjarunError:
    try:
        return template.render_context(context, now=0)
    except JinjarunError as error:
        return error


def _told(answer: Rendered | JinjarunError) -> tuple[object, ...]:
    if isinstance(answer, JinjarunError):
        return type(answer), answer.message, answer.line, answer.column
    return answer.text, answer.reached
