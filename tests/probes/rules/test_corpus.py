"""Rules on the real templates: every error on a release was looked at, and the table in the documentation is true.

All 520 templates take minutes, so here only some are linted anew and compared with what was kept:
`python -m tests.bench.rules_over_corpus --write` does all.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from probes.rules import rules
from tests.bench.rules_over_corpus import FOUND, PAGE, brief, kept, lint_slugs, manifest, officials, page
from tests.conformance.golden import NO_SHARED, have_shared

OFFICIAL_ERRORS = Path(__file__).parent / "official_errors.json"
EVERY = 12
"""Of the templates that are no releases every so many is linted anew, of the releases every third."""

needs_shared = pytest.mark.skipif(not have_shared(), reason=NO_SHARED)


def reasons() -> dict[tuple[str, str], str]:
    rows = json.loads(OFFICIAL_ERRORS.read_text(encoding="utf-8"))
    found = {(row["slug"], row["code"]): row["reason"] for row in rows}
    assert len(found) == len(rows)
    return found


def test_each_reason_says_where() -> None:
    for (_, code), reason in reasons().items():
        assert code in rules()
        assert len(reason.split()) > 6


@needs_shared
def test_every_error_on_a_release_was_looked_at() -> None:
    official = set(officials())
    errors = {
        (slug, one.split()[0])
        for slug, found in kept().items()
        for one in found
        if slug in official and one.endswith(" error")
    }
    assert errors == reasons().keys()


@needs_shared
def test_every_template_was_evaluated() -> None:
    assert kept().keys() == manifest().keys()
    known = {f"{code} {what}" for code in rules() for what in ("error", "warning", "info", "also")}
    assert {one for found in kept().values() for one in found} <= known


@needs_shared
def test_what_was_kept_is_still_found() -> None:
    official = officials()
    others = [slug for slug in manifest() if slug not in official]
    asked = [*official[::3], *others[::EVERY]]
    found = brief(lint_slugs(asked))
    assert found == {slug: kept()[slug] for slug in asked}


@needs_shared
def test_the_page_has_the_table_of_what_was_kept() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(kept(), officials()), f"{PAGE.name} is older than {FOUND.name}"


def judged() -> list[dict[str, str]]:
    """100 hits of the newer rules that were drawn at random, each rendered or read, and whether it was right. What was
    wrong was mended."""
    lines = (Path(__file__).parent / "judged_hits.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_most_hits_that_were_drawn_are_right() -> None:
    wrong = [row for row in judged() if row["verdict"] == "wrong"]
    assert len(judged()) == 100
    assert len(wrong) <= 5


@needs_shared
def test_what_was_judged_right_is_found_and_what_was_wrong_is_not() -> None:
    found = {(slug, one.split()[0]) for slug, codes in kept().items() for one in codes}
    assert {(row["slug"], row["code"]) for row in judged() if row["verdict"] == "right"} <= found
    assert not {(row["slug"], row["code"]) for row in judged() if row["verdict"] == "wrong"} & found
