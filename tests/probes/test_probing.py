"""What a whole probe asks, and what it does not ask any more."""

from __future__ import annotations

from probes import probe
from probes.rendering.renders import GIVES_UP_AFTER, Renders
from tests.families import family

ENDLESS = (
    "{% for i in range(1000) %}{% for j in range(1000) %}{% endfor %}{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
)
ONE_LONG = "{% if messages|length > 2 %}" + ENDLESS + "{% else %}{{ messages[0].content }}{% endif %}"


def test_a_template_that_hits_limits_is_soon_asked_no_more() -> None:
    report = probe(ENDLESS)
    assert report.cost.renders == 2 * GIVES_UP_AFTER
    assert [found.code for found in report.findings] == ["SC105"]
    assert report.status == "partial"
    assert {one.answer for one in report.observed.values()} == {"unknown"}


def test_what_was_not_asked_is_no_verdict() -> None:
    """Once it is given up, also what would render is not evaluated; what rendered before stays."""
    renders = Renders(ONE_LONG)
    fine = {"messages": [{"role": "user", "content": "Hi"}]}
    assert renders.render("transformers:raw", fine).text == "Hi"  # type: ignore[arg-type]
    for turns in range(GIVES_UP_AFTER):
        chat = {"messages": [{"role": "user", "content": "Hi"}] * (3 + turns)}
        assert renders.render("transformers:raw", chat).limited  # type: ignore[arg-type]
    other = {"messages": [{"role": "user", "content": "Ho"}]}
    assert renders.render("transformers:raw", other).limited  # type: ignore[arg-type]
    assert renders.render("transformers:raw", fine).text == "Hi"  # type: ignore[arg-type]
    assert renders.render("llama.cpp:raw", other).text == "Ho"  # type: ignore[arg-type]


def test_quick_answers_engines_caps_and_stop() -> None:
    whole, quick = (probe(family("chatml").source, depth=depth) for depth in ("full", "quick"))
    assert quick.caps == whole.caps
    assert quick.stop == whole.stop
    assert quick.stop is not None
    assert quick.stop.written == ["<|im_end|>"]
    assert [engine.path for engine in quick.engines] == [
        "raw",
        "raw",
        "llama-server",
        "chat-completions",
        "chat-completions",
    ]
    assert (quick.findings, quick.observed, quick.shape, quick.prefix) == ([], {}, None, None)
    assert quick.cost.renders < whole.cost.renders / 2
