"""vLLM's and SGLang's paths against recorded answers of their own code: a sample here, all of it by
`python -m tests.conformance.paths`."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

import pytest

from jinjarun.limits import Limits
from jinjarun.serving.sglang import content_format as sglang_format
from jinjarun.serving.sglang.content_format import may_reorder_tool_results
from jinjarun.serving.vllm import content_format as vllm_format
from tests.conformance import paths
from tests.conformance.golden import lines
from tests.conformance.paths import NO_PATHS, PATHS, Row, have_paths

pytestmark = pytest.mark.skipif(not have_paths(), reason=NO_PATHS)

ONE_IN = 50
"""Of the large recordings, every so many rows are tried, the same ones each time."""


def sample(server: str) -> Iterator[Row]:
    return (row for row in paths.rows(server) if zlib.crc32(row.id.encode()) % ONE_IN == 0)


def differing(rows: Iterator[Row]) -> tuple[int, list[str]]:
    account = paths.Account()
    for row in rows:
        account.add(row)
    return account.total, [f"{row.id}: {got} {text[:200]!r}" for row, got, text in account.differing]


@pytest.mark.parametrize("server", ["vllm", "sglang", "vllm-pinned", "sglang-pinned"])
def test_a_sample_of_the_recorded_answers(server: str) -> None:
    total, wrong = differing(sample(server))
    assert total > 400
    assert wrong == []


@pytest.mark.parametrize("server", ["probes-vllm", "probes-sglang"])
def test_what_a_template_sees(server: str) -> None:
    total, wrong = differing(paths.rows(server))
    assert total == 544
    assert wrong == []


@pytest.mark.parametrize(("server", "count"), [("vllm", 306), ("sglang", 99)])
def test_what_flags_change(server: str, count: int) -> None:
    total, wrong = differing(paths.flag_rows(server))
    assert total == count
    assert wrong == []


@pytest.mark.parametrize("server", ["vllm", "sglang", "probes-vllm", "probes-sglang"])
def test_content_formats(server: str) -> None:
    detect = vllm_format if "vllm" in server else sglang_format
    recorded = list(lines(PATHS / f"{server}.jsonl.gz"))
    wrong = [row["template"] for row in recorded if detect(paths.source_of(row["template"])) != row["content_format"]]
    assert wrong == []


def test_templates_that_look_up_tool_results() -> None:
    wrong = [
        row["template"]
        for row in lines(PATHS / "sglang.jsonl.gz")
        if may_reorder_tool_results(paths.source_of(row["template"]), Limits()) != row["may_reorder_tool_results"]
    ]
    assert wrong == []
