"""A limit always ends in LimitExceeded, whatever the template tries and wherever the caller stands."""

from __future__ import annotations

import sys
import threading
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jinjarun import InputError, LimitExceeded, Limits, Rendered, Template, chat_template_caps
from jinjarun.limits import MOST_GROWTH, REQUEST_BYTES, REQUEST_TEXTS, Allowance

BOTH = ("transformers", "llama.cpp")

GREEDY = {
    "steps": "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
    "string_bytes": "{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}"
    "{% for i in range(40) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
    "output_bytes": "{% set s = 'x' * 3000000 %}{{ s }}{{ s }}",
    "items": "{% for i in range(100001) %}{% endfor %}",
    "depth": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "data_depth": "{% set ns = namespace(a=[]) %}{% for i in range(200) %}{% set ns.a = [ns.a] %}{% endfor %}"
    "{{ ns.a }}",
    "strftime_chars": "{{ strftime_now('%d' * 33) }}",
}


@pytest.mark.parametrize("dialect", BOTH)
@pytest.mark.parametrize("limit", GREEDY)
def test_each_limit_is_named_with_its_line(dialect: str, limit: str) -> None:
    with pytest.raises(LimitExceeded) as failed:
        Template(GREEDY[limit], dialect).render_context({})
    assert failed.value.limit == limit
    assert failed.value.allowed == getattr(Limits(), limit)


@pytest.mark.parametrize(
    ("limit", "source"),
    [
        ("source_bytes", "x" * 300_000),
        ("tokens", "{{ a }}" * 30_000),
        ("brackets", "{{ " + "(" * 101 + "1" + ")" * 101 + " }}"),
        ("depth", "{{ " + "not " * 600 + "1 }}"),
    ],
)
def test_limits_of_the_source(limit: str, source: str) -> None:
    with pytest.raises(LimitExceeded) as failed:
        Template(source, "transformers")
    assert failed.value.limit == limit


def test_caps_have_one_allowance_for_all_their_renders() -> None:
    with pytest.raises(LimitExceeded) as failed:
        chat_template_caps("{% for i in range(90000) %}{% endfor %}{{ messages[0].content }}")
    assert (failed.value.limit, failed.value.allowed) == ("caps_steps", Limits().steps)


def test_an_allowance_is_drawn_from_by_each_render() -> None:
    template = Template("{% for i in range(100) %}{{ i }}{% endfor %}" + "{% if add_generation_prompt %}A{% endif %}")
    allowance = Allowance("some_steps", 3 * template.render([]).cost)
    for _ in range(2):
        template.render_context({}, allowance=allowance)
    prompts = template.render_generation_prompts({}, [True, False], allowance=allowance)
    assert [type(answer) for answer in prompts.values()] == [Rendered, Rendered]
    with pytest.raises(LimitExceeded) as failed:
        template.render_context({}, allowance=allowance)
    assert (failed.value.limit, failed.value.allowed) == ("some_steps", allowance.steps)


PASS = "{% for m in messages %}{{ m.content }}{% endfor %}"


def chat(messages: int, size: int = 1) -> list[dict[str, str]]:
    return [{"role": "user", "content": "x" * size} for _ in range(messages)]


@pytest.mark.parametrize("dialect", BOTH)
def test_a_large_request_gets_more_steps_and_a_small_one_does_not(dialect: str) -> None:
    limits = replace(Limits(), steps=500)
    assert Template(PASS, dialect, limits).render(chat(2_000)).cost > 4_000
    hostile = Template("{% for i in range(100000) %}{% endfor %}" + PASS, dialect, limits)
    allowed = []
    for messages in (1, 19, 2_000):
        with pytest.raises(LimitExceeded) as failed:
            hostile.render(chat(messages))
        assert failed.value.limit == "steps"
        allowed.append(failed.value.allowed)
    assert allowed[:2] == [500, 500]
    assert 100 * 500 <= allowed[2] <= 101 * 500


@pytest.mark.parametrize("spans", [False, True])
@pytest.mark.parametrize("dialect", BOTH)
def test_a_request_is_as_large_as_the_texts_of_its_objects(dialect: str, spans: bool) -> None:
    limits = replace(Limits(), steps=500)
    hostile = Template("{% for i in range(100000) %}{% endfor %}{{ messages[0].role }}", dialect, limits)
    context = {"messages": chat(50, 40), "é": [{"é": "é" * 50, "n": [1]}] * 50, "s": "x" * 10**6, "l": [{"a": 1}] * 500}
    with pytest.raises(LimitExceeded) as failed:
        hostile.render_context(context, spans=spans)
    size = 50 * (len("role") + len("user") + len("content") + 40) + 50 * 102
    assert failed.value.allowed == limits.for_request(150, size).steps == 500 * 150 // 40 + 500 * size // 400_000


@given(texts=st.integers(0, 10**7), size=st.integers(0, 10**9), steps=st.integers(0, 10**9))
def test_limits_of_a_request_grow_with_it_and_end(texts: int, size: int, steps: int) -> None:
    limits = Limits(steps=steps)
    grown = limits.for_request(texts, size)
    assert steps <= grown.steps <= MOST_GROWTH * steps
    if steps:
        assert grown.string_bytes == grown.output_bytes >= max(limits.string_bytes, 4 * size - 4)
    if texts <= REQUEST_TEXTS // 2 and size <= REQUEST_BYTES // 2:
        assert grown == limits
    same = {"steps": steps, "string_bytes": limits.string_bytes, "output_bytes": limits.output_bytes}
    assert replace(grown, **same) == limits


@pytest.mark.parametrize("dialect", BOTH)
def test_a_message_as_large_as_the_input_may_be_is_written(dialect: str) -> None:
    template = Template("{% for m in messages %}{{ m.content | trim }}{% endfor %}", dialect)
    assert len(template.render(chat(1, 15_000_000)).text) == 15_000_000


def test_a_large_render_takes_its_share_of_an_allowance() -> None:
    template = Template(PASS, "transformers", replace(Limits(), steps=500))
    allowance = Allowance("some_steps", 500)
    cost = template.render_context({"messages": chat(2_000)}, allowance=allowance).cost
    taken = allowance.steps - allowance.left
    assert cost // 101 <= taken <= cost // 100
    allowance.take(allowance.left - taken // 2)
    with pytest.raises(LimitExceeded, match="some_steps"):
        template.render_context({"messages": chat(2_000)}, allowance=allowance)


@pytest.mark.parametrize("dialect", BOTH)
def test_the_message_says_whose_limit_it_is_and_how_to_raise_it(dialect: str) -> None:
    with pytest.raises(LimitExceeded) as failed:
        Template(GREEDY["steps"], dialect).render_context({})
    assert failed.value.message == (
        "limit exceeded: steps (jinjarun allows 500,000; to allow more: --limit steps=N, in Python Limits(steps=N))"
    )


def test_a_captured_text_is_measured_in_bytes_under_every_limit() -> None:
    limits = replace(Limits(), string_bytes=100)
    for dialect in BOTH:
        with pytest.raises(LimitExceeded, match="string_bytes"):
            Template("{% set s %}" + "é" * 60 + "{% endset %}{{ s }}", dialect, limits).render_context({})


@pytest.mark.parametrize("dialect", BOTH)
def test_integers(dialect: str) -> None:
    source = "{% set ns = namespace(n=3) %}{% for i in range(40) %}{% set ns.n = ns.n * ns.n %}{% endfor %}{{ ns.n }}"
    if dialect == "llama.cpp":
        assert Template(source, dialect).render_context({}).text == "-9223372036854775808"
    else:
        with pytest.raises(LimitExceeded, match="integer_bits"):
            Template(source, dialect).render_context({})


def test_input_is_bounded_and_refused_with_its_path() -> None:
    template = Template("{{ messages }}")
    with pytest.raises(InputError, match=r"messages\[0\]\.content") as failed:
        template.render([{"role": "user", "content": float("nan")}])
    assert failed.value.details["path"] == "messages[0].content"
    with pytest.raises(InputError, match="16,000,000 bytes"):
        template.render([{"role": "user", "content": "x" * 16_000_001}])
    cycle: list[object] = []
    cycle.append(cycle)
    with pytest.raises(InputError, match="nested deeper"):
        template.render_context({"messages": cycle})
    with pytest.raises(InputError, match="variables are an object, not list"):
        template.render([], variables=[1])  # type: ignore[arg-type]
    with pytest.raises(InputError, match="must be an object"):
        template.render(["hi"])  # type: ignore[list-item]


@pytest.mark.parametrize("dialect", BOTH)
def test_the_outcome_does_not_depend_on_the_callers_stack(dialect: str) -> None:
    source = "{% macro m(n) %}{{ n }}{% if n %}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}{{ data }}"
    data: list[object] = []
    for _ in range(90):
        data = [data]
    expected = Template(source, dialect).render_context({"data": data}).text

    def deep(levels: int) -> str:
        return deep(levels - 1) if levels else Template(source, dialect).render_context({"data": data}).text

    assert deep(sys.getrecursionlimit() - 120) == expected


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(BOTH), st.integers(0, 40), st.integers(1, 40))
def test_code_that_runs_often_is_paid_each_time(dialect: str, times: int, nodes: int) -> None:
    code = "+".join(["1"] * nodes)
    for source in (
        f"{{% for i in range(n) if {code} == 0 %}}{{% endfor %}}",
        f"{{% macro m(a={code}) %}}{{% endmacro %}}{{% for i in range(n) %}}{{{{ m() }}}}{{% endfor %}}",
        f"{{% macro m() %}}{{{{ {code} }}}}{{% endmacro %}}{{% for i in range(n) %}}{{% set x = m() %}}{{% endfor %}}",
    ):
        assert Template(source, dialect).render_context({"n": times}).cost >= times * nodes


@pytest.mark.parametrize(("name", "value"), [("steps", -1), ("steps", True), ("items", "9"), ("depth", 10**6)])
def test_limits_that_are_none(name: str, value: object) -> None:
    with pytest.raises(InputError) as failed:
        replace(Limits(), **{name: value})  # type: ignore[arg-type]
    assert failed.value.details["path"] == f"limits.{name}"


def test_one_template_in_many_threads() -> None:
    template = Template("{% for m in messages %}{{ m.content }}{{ loop.index }}{% endfor %}", "transformers")
    wrong: list[str] = []

    def work(text: str) -> None:
        for _ in range(50):
            got = template.render([{"role": "user", "content": text}] * 3, spans=True).text
            if got != f"{text}1{text}2{text}3":
                wrong.append(got)

    threads = [threading.Thread(target=work, args=(f"t{i}",)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(BOTH), st.integers(1, 400), st.integers(0, 30), st.integers(0, 12))
def test_fewer_steps_never_give_another_answer(dialect: str, steps: int, items: int, depth: int) -> None:
    source = (
        "{% macro m(n) %}({% if n %}{{ m(n - 1) }}{% endif %}){% endmacro %}"
        "{% for i in range(items) %}{{ 'text ' * 3 ~ i }}{% endfor %}{{ m(depth) }}"
    )
    context = {"items": items, "depth": depth}
    whole = Template(source, dialect).render_context(context)
    template = Template(source, dialect, replace(Limits(), steps=steps))
    if whole.cost <= steps:
        assert template.render_context(context) == whole
    else:
        with pytest.raises(LimitExceeded):
            template.render_context(context)
