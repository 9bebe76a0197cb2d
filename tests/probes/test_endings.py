"""What ends a turn, on the format families and on forms that go their own ways."""

from __future__ import annotations

import pytest

from probes.chapters.endings import Ending, endings, markers_in
from probes.chapters.shape import shape
from probes.rendering.renders import EvidenceBook, Renders
from tests.families import WITH_TEMPLATE, family
from tests.probes.token_files import CHATML

ENDS = {
    "chatml": ["<|im_end|>"],
    "deepseek-r1": ["<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"],
    "flat": [None],
    "gemma": ["<end_of_turn>"],
    "glm": ["<|user|>", "<|observation|>"],
    "granite": ["<|end_of_text|>", "<|end_of_text|>"],
    "harmony": ["<|return|>", "<|call|>"],
    "hermes-tools": ["<|im_end|>", "<|im_end|>"],
    "llama2": ["</s>"],
    "llama3": ["<|eot_id|>", "<|eot_id|>"],
    "mistral": ["</s>", "</s>"],
    "phi": ["<|end|>"],
}
"""The end of an answer, and of calls where the family writes calls."""

CALLS = (
    "{% for m in messages %}<|turn|>{{ m.role }}\n{{ m.content }}"
    "{% for call in m.tool_calls or [] %}<call>{{ call.function.arguments | tojson }}</call>{% endfor %}"
    "END{% endfor %}"
)


def rendering(source: str) -> Renders:
    return Renders(source, bos_token="<s>", eos_token="</s>")


def of_family(name: str) -> Renders:
    config = family(name).config
    return Renders(family(name).source, bos_token=config["bos_token"] or "", eos_token=config["eos_token"] or "")


@pytest.mark.parametrize(("name", "expected"), ENDS.items(), ids=ENDS)
def test_families(name: str, expected: list[str | None]) -> None:
    assert [ending.marker for ending in endings(of_family(name))] == expected


@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_the_shape_sees_the_same_end(name: str) -> None:
    """Two independent ways to one answer; only where nothing closes a turn the shape has none."""
    renders = of_family(name)
    answer = endings(renders)[0]
    seen = shape(renders, EvidenceBook(name)).end_of_turn.text
    assert seen == (answer.marker if answer.closing else None)


def only(source: str, known: tuple[str, ...] = ()) -> list[Ending]:
    return list(endings(rendering(source), known))


@pytest.mark.parametrize(
    ("end", "expected"),
    [
        ("<|im_end|>", "<|im_end|>"),
        ("[|endofturn|]", "[|endofturn|]"),
        ("<turn|>", "<turn|>"),
        ("[e~[", "[e~["),
        ("<｜end▁of▁sentence｜>", "<｜end▁of▁sentence｜>"),
        ("<end_of_turn>", "<end_of_turn>"),
        ("{{ eos_token }}", "</s>"),
        ("[/END]", "[/END]"),
        (" [1, 2] ", None),
        ("", None),
    ],
)
def test_shapes_of_markers(end: str, expected: str | None) -> None:
    [answer] = only("{% for m in messages %}{{ m.role }}: {{ m.content }}" + end + "\n{% endfor %}")
    assert answer.marker == expected


def test_what_is_known_needs_no_shape() -> None:
    source = CALLS.replace("END", "over_and_out")
    assert only(source, ("over_and_out",))[0].closing == ("over_and_out",)


def test_a_turn_that_is_opened_unasked_closes_nothing() -> None:
    """The opening of the model's turn stands after every last message, and after every message before the next."""
    [answer] = only("{% for m in messages %}<|turn|>{{ m.content }}<|over|>{% endfor %}<|turn|>")
    assert (answer.closing, answer.opening) == (("<|over|>",), "<|turn|>")


def test_the_end_of_a_call_is_not_the_end_of_its_turn() -> None:
    answer, calls = only(CALLS.replace("END", "<|over|>"))
    assert (answer.marker, calls.closing, calls.marker) == ("<|over|>", ("<|over|>",), "<|over|>")


def test_calls_that_nothing_closes_tell_nothing() -> None:
    source = CALLS.replace("END", "{% if not m.tool_calls %}<|over|>{% endif %}")
    assert [ending.after for ending in only(source)] == ["answer"]


def test_a_last_turn_that_stays_open_is_seen_in_the_middle() -> None:
    source = CHATML.replace("<|im_end|>", "{% if not loop.last %}<|im_end|>{% endif %}")
    [answer] = only(source)
    assert (answer.closing, answer.opening, answer.marker) == ((), "<|im_end|>", "<|im_end|>")


def test_a_template_that_loads_nowhere_has_no_ending() -> None:
    assert only("{% for %}") == []


def test_markers_stand_in_order() -> None:
    found = list(markers_in("a<|x|>b</tool>[INST]{'a': ['B']}", frozenset({"b"})))
    assert [marker.text for marker in found] == ["<|x|>", "b", "</tool>", "[INST]"]
    assert all("a<|x|>b</tool>[INST]"[marker.start : marker.end] == marker.text for marker in found)
