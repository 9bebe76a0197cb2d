"""What strangers wrote, in every field of every format and of every text that a command prints.

Each format is read back by what it is for: the modules csv, json, xml and html of Python, a Markdown parser, Parquet's
reader, and a reading of GitHub's runner (actions/runner, ActionCommand.cs). None may find more than was written.
"""

from __future__ import annotations

import csv
import importlib
import inspect
import io
import json
import os
import pkgutil
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote_to_bytes
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import probes.commands
import probes.reporters
from probes.rendering.counting import CodePoints
from probes.reporters import escaping
from probes.reporters.columns import COLUMNS
from probes.reporters.jsonl import read
from probes.reporters.registry import FORMATS
from probes.reporters.text import figures_text
from probes.results.rows import Brief, Row
from probes.results.tally import Tally
from tests.probes.conftest import Run
from tests.probes.hostile_values import HOSTILE, argument, filled
from tests.probes.outer_pytest import run_pytest

CODE = "CT102"
"""A rule of ours: what names a rule is looked up, and never a stranger's."""

ANY_TEXT = st.text(st.characters(exclude_categories=()), max_size=60)
TEXTS = st.one_of(
    ANY_TEXT, st.lists(st.one_of(ANY_TEXT, st.sampled_from([one for one in HOSTILE if len(one) < 500]))).map("".join)
)
TURNS = range(3)


def rows(text: str) -> list[Row]:
    """Rows of every status, with all fields hostile and in every combination of null and not."""
    error = {"type": text, "message": text}
    made: list[Row] = [filled(Row, text, turn, error=error, detail=lambda: b"x") for turn in range(8)]
    made[1] = replace(made[0], kind="jinja_file", first=True)
    return [replace(row, error=None if row.status in {"probed", "no_template"} else error) for row in made]


def written(name: str, given: list[Row]) -> bytes:
    out = io.BytesIO()
    FORMATS[name].write(given, out)
    return out.getvalue()


# GitHub's runner


def command_of(line: str) -> tuple[str, dict[str, str], str] | None:
    """The command that the runner takes a line of a log for: name, properties, data. Every name counts as known."""
    line = line.lstrip()
    if line.startswith("::") and "::" in line[2:]:
        info, _, data = line[2:].partition("::")
        name, _, told = info.partition(" ")
        properties = dict(one.split("=", 1) for one in told.strip().split(",") if "=" in one)
        return name, {key: unescaped(value) for key, value in properties.items()}, unescaped(data)
    if found := re.search(r"##\w*\[([^\]]*)\](.*)", line):
        return found[1], {}, found[2]
    return None


def unescaped(text: str) -> str:
    for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, char)
    return text


def harmless(text: str) -> bool:
    """Whether a terminal or a CI that is shown this shows it, and does nothing."""
    lines = text.split("\n")
    return all(line.isprintable() and command_of(line) is None for line in lines)


def test_the_runner_is_read_as_it_is_written() -> None:
    assert command_of("  ::error file=a%3A,line=1::b%0Ac") == ("error", {"file": "a:", "line": "1"}, "b\nc")
    assert command_of("said ##[add-mask]b") == ("add-mask", {}, "b")
    assert command_of("a ::error::b") is None
    assert [harmless(one) for one in ("a\n::error::b", "\x1b[0m", "\u202e", "a\rb", "é <b>")] == [False] * 4 + [True]


# Formats


def check_text(given: list[Row], data: bytes) -> None:
    text = data.decode()
    assert harmless(text)
    assert len(text.splitlines()) == len(given) + figures(given).count("\n")


def figures(given: list[Row]) -> str:
    tally = Tally()
    list(tally.watching(given))
    return figures_text(tally)


def check_json(given: list[Row], data: bytes) -> None:
    assert harmless(data.decode())
    assert json.loads(data)["rows"] == [row.to_dict() for row in given]


def check_jsonl(given: list[Row], data: bytes) -> None:
    lines = data.decode().splitlines()
    assert harmless("\n".join(lines))
    assert [json.loads(line) for line in lines] == [row.to_dict() for row in given]
    if escaping.utf8(given[0].id) == given[0].id:  # pydantic takes no lone surrogates
        assert list(read(io.BytesIO(data))) == given


def check_csv(given: list[Row], data: bytes) -> None:
    assert harmless(data.decode().replace("\r\n", "\n"))
    heads, *records = csv.reader(io.StringIO(data.decode(), newline=""), strict=True)
    assert (heads, len(records)) == (list(COLUMNS), len(given))
    for record in records:
        assert len(record) == len(heads)
        for cell in record:
            assert not cell.strip().startswith(("=", "+", "-", "@", "＝", "＋", "－", "＠"))


def check_parquet(given: list[Row], data: bytes) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    records = parquet.read_table(io.BytesIO(data)).to_pylist()
    assert [record["id"] for record in records] == [escaping.utf8(row.id) for row in given]


def check_markdown(given: list[Row], data: bytes) -> None:
    text = data.decode()
    assert harmless(text)
    tables = [token for token in markdown(text) if token.type == "table_open"]
    assert len(tables) == len(re.findall(r"^\| ---", text, re.MULTILINE))
    shown = escaping.line(given[0].id).strip(" ")
    assert escaping.markdown(given[0].id) == shown or shown in codes(text)


def check_html(given: list[Row], data: bytes) -> None:
    page = Elements()
    page.feed(data.decode())
    page.close()
    usual = Elements()
    usual.feed(written("html", [replace(row, detail=row.detail) for row in rows("usual")]).decode())
    usual.close()
    assert page.tags == usual.tags
    assert harmless(page.data.replace("\t", " "))
    found = json.loads(page.data)
    assert {one["id"] for one in found["templates"]} <= {row.id for row in given}
    assert [one[0] for one in found["troubles"]] == [row.id for row in given if row.error is not None]


class Elements(HTMLParser):
    """The elements of a page, and the text of the one that holds its data."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[Any] = []
        self.data = ""
        self._in_data = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, [name for name, _ in attrs]))
        self._in_data = ("id", "data") in attrs

    def handle_endtag(self, tag: str) -> None:
        self.tags.append(tag)
        self._in_data = False

    def handle_data(self, data: str) -> None:
        if self._in_data:
            self.data += data


def check_sarif(given: list[Row], data: bytes) -> None:
    assert harmless(data.decode())
    (run,) = json.loads(data)["runs"]
    told = [*run["results"], *run["invocations"][0]["toolExecutionNotifications"]]
    assert len(told) == sum(
        (row.error is not None) + len(row.summary.findings if row.summary is not None else []) for row in given
    )
    for one in told:
        assert not re.search(r"(?<!\\)\[[^\[\]]*\]\(", one["message"]["text"]), "a link"
        place = one["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        assert re.fullmatch(r"(file://)?[A-Za-z0-9_.~/%-]*", place)
        assert "%" not in re.sub("%[0-9A-F]{2}", "", place)
        path = given[0].id.encode("utf-8", "surrogatepass")
        assert unquote_to_bytes(place.removeprefix("file://")) == path


def check_junit(given: list[Row], data: bytes) -> None:
    assert harmless(data.decode())
    (suite,) = ElementTree.fromstring(data)
    cases = list(suite)
    assert [case.tag for case in cases] == ["testcase"] * len(given)
    for case, row in zip(cases, given, strict=True):
        place = row.id if row.key is None else f"{row.id} {row.key}"
        assert case.get("name") == escaping.line(place)
        assert {inner.tag for inner in case} <= {"failure", "error", "skipped", "system-out"}
        assert all(len(inner) == 0 for inner in case)


def check_github(given: list[Row], data: bytes) -> None:
    lines = data.decode().split("\n")[:-1]
    assert all(line.isprintable() for line in lines)
    found = [command_of(line) for line in lines]
    told: list[Brief | None] = []
    for row in given:
        told += [None] * (row.error is not None) + (list(row.summary.findings) if row.summary is not None else [])
    assert len(found) == len(told)
    for command, one in zip(found, told, strict=True):
        assert command is not None
        name, properties, data_told = command
        assert name in {"error", "warning", "notice"}
        assert properties.keys() <= {"file", "title", "line", "col"}
        assert properties.get("file", "") == escaping.line(given[0].id)
        if one is not None:
            assert data_told.endswith(escaping.line(one.message)[4:])


CHECKS: dict[str, Callable[[list[Row], bytes], None]] = {
    name.removeprefix("check_"): value for name, value in list(globals().items()) if name.startswith("check_")
}


def test_every_format_is_checked() -> None:
    assert CHECKS.keys() == FORMATS.keys()


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_shows_what_a_stranger_wrote_and_obeys_nothing(name: str) -> None:
    for text in HOSTILE:
        CHECKS[name](rows(text), written(name, rows(text)))


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_takes_any_text(name: str) -> None:
    @settings(max_examples=25, deadline=None)
    @given(TEXTS)
    def check(text: str) -> None:
        CHECKS[name](rows(text), written(name, rows(text)))

    check()


# Markdown


def markdown(text: str) -> list[Any]:
    """The tokens of a page; fails for any that a stranger would have to have made."""
    parser = (
        pytest.importorskip("markdown_it").MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
    )
    found = [inner for token in parser.parse(text) for inner in (token, *(token.children or []))]
    markup = {token.type for token in found} & {
        "html_block",
        "html_inline",
        "link_open",
        "image",
        "em_open",
        "strong_open",
    }
    assert not markup, markup
    assert not any(token.type == "text" and re.search(r"://|@|(?<!#)#\d|www\.", token.content) for token in found)
    return found


def codes(text: str) -> list[str]:
    return [token.content for token in markdown(text) if token.type == "code_inline"]


@settings(max_examples=200, deadline=None)
@given(TEXTS)
def test_markdown_shows_a_text_as_it_is(text: str) -> None:
    shown, whole = escaping.markdown(text), escaping.line(text).strip(" ")
    if shown != whole:
        assert codes(f"a {shown} b") == [whole]
        table = f"| a | b |\n| --- | --- |\n| {escaping.markdown_cell(text)} | c |"
        assert codes(table) == [whole]
        assert sum(token.type == "td_open" for token in markdown(table)) == 2


# What commands print


def text_functions() -> dict[str, Callable[..., str]]:
    """Every function that makes a text or a page of what was found."""
    found = {}
    for module in pkgutil.iter_modules(probes.reporters.__path__):
        for name, function in vars(importlib.import_module(f"probes.reporters.{module.name}")).items():
            ours = inspect.isfunction(function) and function.__module__ == f"probes.reporters.{module.name}"
            if ours and name.endswith(("_text", "_export")) and module.name != "escaping":
                found[name] = function
    return found


MORE_ARGUMENTS: dict[str, Callable[[str], list[Any]]] = {
    "prefix_text": lambda _: [CodePoints()],
    "examples_text": lambda text: [filled(argument(text_functions()["fuzz_text"]), text, **BROKEN)[0].broken],
    "fuzz_export": lambda text: [text],
}
BROKEN: dict[str, Any] = {"code": CODE, "prompt": None}
GIVEN: dict[str, dict[str, Any]] = {
    "fuzz_text": BROKEN,
    "fuzz_export": BROKEN,
    "examples_text": BROKEN,
    "prefix_text": {"later": None},
    "rule_text": {"code": CODE},
    "rules_text": {"code": CODE},
}


def printed(name: str, text: str, turn: int) -> str:
    function = text_functions()[name]
    if name == "figures_text":
        return figures(rows(text))
    more = MORE_ARGUMENTS.get(name, lambda _: [])
    return function(filled(argument(function), text, turn, **GIVEN.get(name, {})), *more(text))


@pytest.mark.parametrize("name", text_functions())
def test_a_text_shows_what_a_stranger_wrote_and_obeys_nothing(name: str) -> None:
    accepted = partial(markdown_page, name) if name.endswith("_export") else harmless
    for text in HOSTILE:
        for turn in TURNS:
            assert accepted(printed(name, text, turn)), (text[:100], turn)


def markdown_page(name: str, page: str) -> bool:
    """Whether a bug report has the parts that it should have, and all that prints."""
    tokens = markdown(page)
    titles = [token for token in tokens if token.type == "heading_open" and token.tag == "h1"]
    assert {token.type for token in tokens} <= {
        *(
            "heading_open",
            "heading_close",
            "paragraph_open",
            "paragraph_close",
            "inline",
            "text",
            "code_inline",
            "fence",
        ),
        "softbreak",
    }
    return len(titles) == 2 and all(line.replace("\t", "").isprintable() for line in page.split("\n"))


@pytest.mark.parametrize("name", text_functions())
def test_a_text_takes_any_text(name: str) -> None:
    accepted = partial(markdown_page, name) if name.endswith("_export") else harmless

    @settings(max_examples=25, deadline=None)
    @given(TEXTS, st.sampled_from(TURNS))
    def check(text: str, turn: int) -> None:
        assert accepted(printed(name, text, turn))

    check()


# Kinds of places


@settings(deadline=None)
@given(TEXTS)
def test_json_is_the_same_value(text: str) -> None:
    value = {text: [text, {"a": text}]}
    for shown in (escaping.json_text(value), escaping.json_text(value, indent=2)):
        assert json.loads(shown) == value
        assert harmless(shown)
        assert shown.encode()
    assert json.loads(escaping.script_json(value)) == value
    assert "<" not in escaping.script_json(value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain: {a} [b] \\n é 😀", "plain: {a} [b] \\n é 😀"),
        ("a\nb\tc\x1b[0m\u202e\u2028\ud800", r"a\nb\tc\x1b[0m\u202e\u2028\ud800"),
        (" ::error::x", r" \x3a:error::x"),
        ("a ::error::x", "a ::error::x"),
        ("##[error]x ##vso[y] ## z", r"#\x23[error]x #\x23vso[y] ## z"),
    ],
)
def test_a_line(text: str, shown: str) -> None:
    assert escaping.line(text) == shown


# The command line

NAME = "a\n::error::b \x1b[31m\u202e##[error]c.jinja"
WRITES = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
RAISES = "{{ raise_exception('no\n::error::x \x1b[31m') }}"
BROKEN_SYNTAX = "::error::x ##[error]y \x1b {% if\n::error::z"
COMMANDS = {name: [name] for name in probes.commands.COMMANDS} | {
    "render --as": ["render", "--as", "llama-server", "--explain"],
    "render --spans": ["render", "--spans"],
    "render --json": ["render", "--json"],
    "probe --json": ["probe", "--json"],
    "lint --json": ["lint", "--json"],
    "prefix --json": ["prefix", "--json"],
    "snapshot": ["snapshot", "--check"],
    "fuzz": ["fuzz", "--max-examples", "3", "--database", "none"],
    "fuzz --json": ["fuzz", "--json", "--max-examples", "3", "--database", "none"],
    "scan": ["scan", "--jobs", "1"],
    "compare --json": ["compare", "--json"],
    "serve": ["serve", "--port", "99999"],
}


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "source", ["absent", BROKEN_SYNTAX, RAISES, WRITES], ids=["absent", "syntax", "raises", "fine"]
)
def test_a_command_prints_nothing_that_acts(
    command: str, source: str, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    if source != "absent":
        Path(NAME).write_text(source, encoding="utf-8")
    code, out, errors = run(*COMMANDS[command], NAME)
    assert code in {0, 1, 2}
    assert harmless(errors), errors
    assert "internal error" not in errors
    assert harmless(out), out


def test_the_plugin_prints_nothing_that_acts(tmp_path: Path) -> None:
    for source in (WRITES, RAISES, BROKEN_SYNTAX):
        (tmp_path / NAME).write_text(source, encoding="utf-8")
        (tmp_path / "::().jinja").write_text(source, encoding="utf-8")
        options = ["--chat-template-examples=2", "--chat-template-law=texts-kept", "--color=no", "-v"]
        done = run_pytest(tmp_path, "--chat-template=.", *options)
        assert done.returncode in {0, 1, 4}, done.stderr
        assert harmless(done.stdout), done.stdout
        assert harmless(done.stderr), done.stderr


def test_the_prompt_itself_is_exact(run: Run, tmp_path: Path) -> None:
    """What a template writes is what is asked for: only a terminal is spared of it."""
    template = tmp_path / "t.jinja"
    text = "::error::x\n\x1b[31m\u202e"
    template.write_text(text, encoding="utf-8")
    assert run("render", template) == (0, text, "")


def test_a_usage_error_prints_nothing_that_acts(run: Run) -> None:
    for arguments in (
        ["rules", NAME],
        ["lint", f"--{NAME.replace(' ', '')}", "x"],
        ["lint", "--fail-on", NAME, "x"],
        [NAME],
    ):
        code, out, errors = run(*arguments)
        assert (code, out) == (2, "")
        assert harmless(errors), errors


def test_a_finding_about_a_name_that_is_no_text(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names are bytes on Linux; they reach us with lone surrogates for what is not UTF-8."""
    monkeypatch.chdir(tmp_path)
    name = os.fsdecode(b"\xff\x9b.jinja")
    try:
        Path(name).write_text(BROKEN_SYNTAX, encoding="utf-8")
    except OSError:
        pytest.skip("this file system takes no such name")
    for format in ("text", "json", "sarif", "junit", "github"):
        code, out, errors = run("lint", name, "--format", format)
        assert (code, errors) == (1, "")
        assert harmless(out) or format == "github"
    for arguments in (["probe"], ["probe", "--json"], ["fuzz"], ["lint", "--write-baseline", "baseline"]):
        code, out, errors = run(*arguments, name)
        assert "internal error" not in errors
        assert harmless(out)
