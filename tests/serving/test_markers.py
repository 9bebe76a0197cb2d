"""The comparison of texts behind llama-server's analysis, and what it finds in small templates."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jinjarun.serving.llama_server import LlamaServer
from jinjarun.serving.markers import Difference, ReasoningMarkers, Segment, common_prefix, difference, segments

PIECES = st.lists(st.sampled_from([b"<a>", b"[b]", b"x", b"\n", b"<", b"]", "é".encode()]), max_size=8).map(b"".join)


@given(PIECES)
def test_segments_cover_the_text(text: bytes) -> None:
    assert b"".join(segment.text for segment in segments(text)) == text


@given(PIECES, PIECES)
def test_differences_rebuild_both_texts(left: bytes, right: bytes) -> None:
    diff = difference(left, right)
    assert diff.prefix + diff.left + diff.suffix == left
    assert diff.prefix + diff.right + diff.suffix == right


@given(PIECES, PIECES)
def test_common_prefix_is_common_and_longest(left: bytes, right: bytes) -> None:
    size = common_prefix(left, right)
    assert left[:size] == right[:size]
    assert left[size : size + 1] != right[size : size + 1] or size == min(len(left), len(right))


def test_an_unclosed_bracket_is_text_to_the_end() -> None:
    assert segments(b"a<b>[c<d>") == [
        Segment(b"a", is_marker=False),
        Segment(b"<b>", is_marker=True),
        Segment(b"[c<d>", is_marker=False),
    ]


@pytest.mark.parametrize(
    ("left", "right", "expected"),
    [
        (b"", b"", Difference(b"", b"", b"", b"")),
        (b"", b"x", Difference(b"", b"", b"x", b"")),
        (b"same", b"same", Difference(b"same", b"", b"", b"")),
        (b"<u>q", b"<u>q<a>", Difference(b"<u>q", b"", b"<a>", b"")),
        (b"<u>q\n", b"<u>q\n<a>\n", Difference(b"<u>q\n", b"", b"<a>\n", b"")),
        (b"<u>ab<e>", b"<u>acb<e>", Difference(b"<u>a", b"", b"c", b"b<e>")),
        (b"<u>q<think>\n\n</think>\n\n", b"<u>q<think>\n", Difference(b"<u>q<think>", b"\n\n</think>\n", b"", b"\n")),
    ],
)
def test_difference(left: bytes, right: bytes, expected: Difference) -> None:
    assert difference(left, right) == expected


def found(source: str) -> ReasoningMarkers:
    return LlamaServer(source)._default.analysis.markers


TURNS = (
    "{% for m in messages %}<{{ m.role }}>%s{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<assistant>%s{% endif %}"
)


@pytest.mark.parametrize(
    ("reasoning", "opening", "expected"),
    [
        ("", "", ReasoningMarkers()),
        ("{{ m.reasoning_content }}", "", ReasoningMarkers()),
        (
            "{% if m.reasoning_content %}<think>\n{{ m.reasoning_content }}\n</think>\n{% endif %}",
            "",
            ReasoningMarkers(thinks=True, start=b"<think>\n", end=b"\n</think>\n"),
        ),
        (
            "{% if m.reasoning_content %}{{ m.reasoning_content }} [END] {% endif %}",
            "",
            ReasoningMarkers(thinks=True, start=b"<assistant>", end=b" [END] "),
        ),
        (
            "{% if m.reasoning_content %}: {{ m.reasoning_content }} [END] {% endif %}",
            "",
            ReasoningMarkers(thinks=True, end=b"[END] "),
        ),
        ("", "{% if enable_thinking %}<think>{% endif %}", ReasoningMarkers(thinks=True, start=b"<think>")),
        (
            "",
            "<think>{% if not enable_thinking %}</think>{% endif %}",
            ReasoningMarkers(thinks=True, start=b"<think>", end=b"</think>"),
        ),
        (
            "",
            "{# content.split('</think>') #}",
            ReasoningMarkers(thinks=True, start=b"<think>", end=b"</think>"),
        ),
        (
            "{% if m.reasoning_content %}<r>\n{{ m.reasoning_content }}</r>\n{% endif %}",
            "{# laguna_glm_thinking #}",
            ReasoningMarkers(thinks=True, start=b"<r>", end=b"</r>"),
        ),
    ],
)
def test_markers_of_a_template(reasoning: str, opening: str, expected: ReasoningMarkers) -> None:
    assert found(TURNS.replace("%s", reasoning, 1).replace("%s", opening, 1)) == expected


def test_reasoning_beside_calls_only() -> None:
    source = (
        "{% for m in messages %}<{{ m.role }}>{% for c in m.tool_calls or [] %}"
        "{% if m.reasoning_content %}<t>{{ m.reasoning_content }}</t>{% endif %}"
        "<call>{{ c.function.name }}</call>{% endfor %}{{ m.content }}{% endfor %}"
    )
    assert found(source) == ReasoningMarkers(thinks=True, start=b"<t>", end=b"</t>")


def test_markers_found_only_behind_a_common_end() -> None:
    source = (
        "{% if enable_thinking %}on{% else %}off{% endif %}{% for m in messages %}<{{ m.role }}>{{ m.content }}"
        "{% endfor %}{% if add_generation_prompt %}<assistant>"
        "{% if not enable_thinking %}<t></t>{% endif %}{% endif %}"
    )
    assert found(source) == ReasoningMarkers()
    longer = source.replace("<assistant>", f"<assistant>{'.' * 80}")
    assert found(longer) == ReasoningMarkers(thinks=True, start=b"<t>", end=b"</t>")
