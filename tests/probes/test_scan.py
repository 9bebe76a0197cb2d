"""Scans: a row for every file, each distinct template probed once, and nothing lost whatever is killed."""

from __future__ import annotations

import contextlib
import errno
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import time
import zlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import CancelledError, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

import probes
from jinjarun.errors import InputError, WorkerError
from probes.commands import program
from probes.commands import scan as command
from probes.reporters.jsonl import read
from probes.results.rows import Row, summarise
from probes.scanner import parquet_pages, worker
from probes.scanner.answers import FILE, Answers
from probes.scanner.running import Lines, Progress, Stoppable, duration, progress, whole_file
from probes.scanner.scan import scan
from probes.scanner.walk import find
from probes.scanner.worker import evaluate, unpacked
from tests.probes.conftest import Run
from tests.probes.scan_targets import Closed, Forging, Gone, Here, Unreliable
from tests.sources.support import SHARED, TEMPLATE, needs_shared, write

OTHER = "{% for message in messages %}{{ message.role }}: {{ message.content }}\n{% endfor %}"
HUGE = "{# " + "x" * 300_000 + " #}"
CONFIG = {"bos_token": "<s>", "chat_template": TEMPLATE}
ROOT = Path(__file__).parents[2]


def rows_of(*paths: Any, **options: Any) -> list[Row]:
    options.setdefault("executor", Here())
    options.setdefault("depth", "quick")
    return list(scan(list(paths), **options))


def told(rows: list[Row]) -> list[tuple[str, str, str | None]]:
    return [(os.path.basename(row.id), row.status, row.name) for row in rows]


# What is found


def test_a_row_for_every_file(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "a/tokenizer_config.json": CONFIG,
            "a/chat_template.jinja": OTHER,
            "a/additional_chat_templates/rag.jinja": "rag",
            "a/tokenizer.json": {},
            "a/README.md": "no source",
            "b/tokenizer_config.json": {"bos_token": "<s>"},
            "b/preprocessor_config.json": {},
            "c/tokenizer_config.json": {
                "chat_template": [{"name": "default", "template": TEMPLATE}, {"name": "tool_use", "template": OTHER}]
            },
            "d/model-tokenizer_config.json": {"chat_template": None},
            "e/tokenizer_config.json": '{"chat_template": ',
        },
    )
    rows = rows_of(tmp_path)
    assert told(rows) == [
        ("chat_template.jinja", "probed", "default"),
        ("tokenizer_config.json", "probed", "default"),
        ("rag.jinja", "probed", "default"),
        ("tokenizer_config.json", "no_template", None),
        ("tokenizer_config.json", "probed", "default"),
        ("tokenizer_config.json", "probed", "tool_use"),
        ("model-tokenizer_config.json", "no_template", None),
        ("tokenizer_config.json", "error", None),
    ]
    assert [row.form for row in rows] == ["string", "string", "string", "absent", "list", "list", "null", None]
    assert rows[-1].error is not None
    assert rows[-1].error["message"].startswith(str(tmp_path / "e" / "tokenizer_config.json"))
    assert rows[5].key == "chat_template[1].template"
    assert rows[0].sha256 == sha256(OTHER.encode()).hexdigest()


def test_a_template_is_probed_once(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}/tokenizer_config.json": CONFIG for number in range(30)})
    write(tmp_path, {"z/z.jinja": OTHER})
    here = Here()
    rows = rows_of(tmp_path, executor=here)
    assert here.calls == [TEMPLATE, OTHER]
    assert [row.first for row in rows] == [True, *[False] * 29, True]
    assert all(row.summary is rows[0].summary for row in rows[:30])


def test_a_row_tells_what_the_report_tells(tmp_path: Path) -> None:
    path = write(tmp_path, {"x.jinja": OTHER}) / "x.jinja"
    rows = scan([path], jobs=1)
    row = next(rows)
    report = probes.probe(OTHER)
    assert row.summary == summarise(report, "full")
    detail = json.loads(unpacked(row.detail() or b""))
    rows.close()
    assert row.detail() is None, "what was kept for the scan is gone"
    assert detail["source"] == OTHER
    assert detail["report"] == report.model_dump(mode="json")
    shown = {render["conversation"]: render["parts"] for render in detail["renders"]}
    assert ["You are a careful Java assistant.", "messages[0].content"] in shown["system-user"]


def test_lists_records_and_paths_on_standard_input(tmp_path: Path) -> None:
    write(tmp_path, {"x.jinja": OTHER, "more.jsonl": '["from a file", {"chat_template": "hello"}]\n'})
    lines = [
        str(tmp_path / "x.jinja"),
        json.dumps({"id": "org/model", "tokenizer_config": CONFIG}),
        json.dumps(["pair", json.dumps(CONFIG)]),
        json.dumps({"id": 7, "tokenizer_config": {}}),
        json.dumps({"id": "list", "tokenizer_config": []}),
        json.dumps({"id": "wrong", "tokenizer_config": {"chat_template": 3}}),
        "{broken",
        "[" * 100_000,
        '{"tokenizer_config": {}}',
        "",
        str(tmp_path / "missing.jinja"),
        str(tmp_path / "more.jsonl"),
    ]
    rows = rows_of("-", stdin=io.BytesIO("\n".join(lines).encode()))
    assert [(os.path.basename(row.id), row.status) for row in rows] == [
        ("x.jinja", "probed"),
        ("model", "probed"),
        ("pair", "probed"),
        ("7", "no_template"),
        ("list", "error"),
        ("wrong", "error"),
        ("-:7", "error"),
        ("-:8", "error"),
        ("-:9", "error"),
        ("missing.jinja", "error"),
        ("from a file", "probed"),
    ]


def test_a_line_that_is_too_long_costs_itself_only() -> None:
    good = json.dumps({"id": "good", "tokenizer_config": CONFIG}).encode()
    stream = io.BytesIO(b"\n".join([good, b'{"id": "' + b"x" * 9_000_000 + b'"}', good]))
    assert told(rows_of("-", stdin=stream)) == [
        ("good", "probed", "default"),
        ("-:2", "error", None),
        ("good", "probed", "default"),
    ]


def test_parquet(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    records = [{"id": "one", "tokenizer_config": json.dumps(CONFIG)}, {"id": "two", "tokenizer_config": None}]
    parquet.write_table(pyarrow.Table.from_pylist(records), tmp_path / "text.parquet")
    parquet.write_table(pyarrow.Table.from_pylist([{"id": "x"}]), tmp_path / "other.parquet")
    write(tmp_path, {"broken.parquet": b"PAR1"})
    names = ["text.parquet", "other.parquet", "broken.parquet"]
    assert told(rows_of(*(tmp_path / name for name in names))) == [
        ("one", "probed", "default"),
        ("two", "no_template", None),
        ("other.parquet", "error", None),
        ("broken.parquet", "error", None),
    ]


def written(path: Path, rows: list[dict[str, Any]], **options: Any) -> Path:
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.Table.from_pylist(rows), path, **{"compression": "zstd", **options})
    return path


@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("compression", ["zstd", "snappy", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_parquet_is_measured_before_it_is_unpacked(
    tmp_path: Path, version: str, compression: str, dictionary: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows of several pages, groups and sizes are read; a page too large ends it before the library sees one."""
    rows = [{"id": f"{n}", "tokenizer_config": json.dumps(CONFIG) + " " * n} for n in range(300)]
    options = {"data_page_version": version, "compression": compression, "use_dictionary": dictionary}
    path = written(tmp_path / "a.parquet", rows, row_group_size=100, write_batch_size=10, data_page_size=500, **options)
    assert [row.id for row in rows_of(path)] == [f"{n}" for n in range(300)]
    parquet = pytest.importorskip("pyarrow.parquet")
    monkeypatch.setattr(parquet_pages, "PAGE_BYTES", 3_000)
    monkeypatch.setattr(parquet.ParquetFile, "iter_batches", lambda *_, **__: pytest.fail("it was unpacked"))
    (row,) = rows_of(path)
    assert row.error is not None
    assert "more than 3,000; write it with fewer rows a page" in row.error["message"]


LARGE: dict[str, tuple[list[dict[str, Any]], str]] = {
    "a text": ([{"id": "a", "tokenizer_config": "x" * 90_000_000}], "has a page of 90,000,004 bytes"),
    "an id": ([{"id": "i" * 90_000_000, "tokenizer_config": "{}"}], "has a page of 90,000,004 bytes"),
    "a text in a struct": (
        [{"id": "a", "tokenizer_config": {"x": "x" * 90_000_000}}],
        "has a page of 90,000,004 bytes",
    ),
    "a list": ([{"id": "a", "tokenizer_config": {"chat_template": [True] * 2_000_000}}], "has 2,000,000 values for 1"),
    "an id in its page": ([{"id": "i" * 2_000, "tokenizer_config": "{}"}], "an id of more than 1,000 characters"),
    "a text in its page": ([{"id": "a", "tokenizer_config": "x" * 8_000_000}], "is longer than 8,000,000 bytes"),
    "a text for all rows": ([{"id": "a", "tokenizer_config": "x" * 7_900_000}] * 3, "is not JSON"),
}


@pytest.mark.parametrize("name", LARGE)
def test_parquet_of_few_bytes_that_holds_many(tmp_path: Path, name: str) -> None:
    content, reason = LARGE[name]
    path = written(tmp_path / "a.parquet", content)
    assert path.stat().st_size < 50_000
    rows = rows_of(path)
    assert len(rows) == len(content)
    for row in rows:
        assert row.error is not None
        assert reason in row.error["message"]


def test_parquet_whose_pages_are_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "a.parquet", [{"id": "a", "tokenizer_config": json.dumps(CONFIG)}])
    whole = path.read_bytes()
    for at in range(4, 60):
        path.write_bytes(whole[:at] + b"\xff" + whole[at + 1 :])
        for row in rows_of(path):
            assert row.status in {"error", "probed", "no_template"}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b'{"id": "x", "tokenizer_config": [' + b"{}," * 100_001 + b"1]}", "holds too much"),
        (b'{"id": "x", "tokenizer_config": "[' + b"\\u007b\\u007d," * 100_001 + b'1]"}', "holds too much"),
        (b'{"id": "x", "tokenizer_config": "' + b"\\u005b" * 600 + b'"}', "is nested too deeply"),
        (b'["x", ' + b"[" * 600, "is nested too deeply"),
        (b'{"id": "' + b"i" * 1_001 + b'", "tokenizer_config": {}}', "is no record"),
        (b'{"id": ' + b"1" * 4_000 + b', "tokenizer_config": {}}', "is no record"),
        (b'{"id": ' + b"1" * 5_000 + b', "tokenizer_config": {}}', "too many digits"),
        (b'{"id": "x", "tokenizer_config": "\\u0000{"}', "is not JSON"),
        ('{"id": "x"}'.encode("utf-16-le"), "is not UTF-8|is not JSON|neither"),
        (b"a" * 5_000, "neither a record nor the name of a file"),
    ],
)
def test_hostile_lines(line: bytes, reason: str) -> None:
    rows = rows_of("-", stdin=io.BytesIO(line))
    assert rows
    for row in rows:
        assert row.error is not None
        assert re.search(reason, row.error["message"])
        assert len(row.id) < 5_000


def test_links_out_of_a_folder_are_not_followed_and_said_once(tmp_path: Path) -> None:
    write(tmp_path, {"secret.jinja": OTHER, "model/real.jinja": OTHER, "model/deep/x.txt": OTHER})
    folder = tmp_path / "model"
    (folder / "a.jinja").symlink_to("../secret.jinja")
    (folder / "b-tokenizer_config.json").symlink_to("/proc/self/environ")
    (folder / "deep" / "c.jinja").symlink_to(tmp_path / "secret.jinja")
    (folder / "inside.jinja").symlink_to("deep/x.txt")
    rows = rows_of(folder)
    assert [pair[:2] for pair in told(rows)] == [
        ("a.jinja", "error"),
        ("inside.jinja", "probed"),
        ("real.jinja", "probed"),
    ]
    assert rows[0].error is not None
    assert "leads out of" in rows[0].error["message"]
    followed = dict(pair[:2] for pair in told(rows_of(folder, follow_symlinks=True)))
    assert followed["a.jinja"] == followed["c.jinja"] == "probed"
    assert followed["b-tokenizer_config.json"] == "error"


def test_links(tmp_path: Path) -> None:
    write(tmp_path, {"real/x.jinja": OTHER})
    (tmp_path / "again").symlink_to("real", target_is_directory=True)
    (tmp_path / "real" / "loop").symlink_to("..", target_is_directory=True)
    (tmp_path / "file.jinja").symlink_to("real/x.jinja")
    (tmp_path / "nothing.jinja").symlink_to("missing")
    (tmp_path / "round.jinja").symlink_to("round.jinja")
    linked = [("file.jinja", "probed"), ("nothing.jinja", "error"), ("round.jinja", "error")]
    assert [pair[:2] for pair in told(rows_of(tmp_path))] == [*linked, ("x.jinja", "probed")]
    followed = rows_of(tmp_path, follow_symlinks=True)
    assert [pair[:2] for pair in told(followed)] == [
        *linked,
        ("x.jinja", "probed"),
        ("loop", "error"),
        ("x.jinja", "probed"),
        ("loop", "error"),
    ]
    assert followed[-1].error is not None
    assert "link back" in followed[-1].error["message"]


def test_the_hugging_face_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    commit = "0" * 40
    write(tmp_path, {"models--org--name/refs/main": commit, "models--org--name/blobs/aa": json.dumps(CONFIG)})
    snapshot = tmp_path / "models--org--name" / "snapshots" / commit
    snapshot.mkdir(parents=True)
    (snapshot / "tokenizer_config.json").symlink_to("../../blobs/aa")
    for target in ("org/name", "hf-cache"):
        assert told(rows_of(target)) == [("tokenizer_config.json", "probed", "default")]
    assert told(rows_of("org/other")) == [("other", "error", None)]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    write(
        tmp_path,
        {"huge.jinja": b"x" * 5_000_000, "bytes.jinja": b"\xff\xfe", "short.gguf": b"GGUF\x03", "ok.jinja": OTHER},
    )
    os.mkfifo(tmp_path / "pipe.jinja")
    rows = rows_of(tmp_path)
    assert {os.path.basename(row.id): row.status for row in rows} == {
        "bytes.jinja": "error",
        "huge.jinja": "error",
        "ok.jinja": "probed",
        "pipe.jinja": "error",
        "short.gguf": "error",
    }
    assert told(rows_of(tmp_path / "missing", "\0", "family:none", "family:chatml")) == [
        ("missing", "error", None),
        ("\0", "error", None),
        ("family:none", "error", None),
        ("family:chatml", "probed", "default"),
    ]


def test_names_that_are_no_text(tmp_path: Path) -> None:
    with open(os.path.join(os.fsencode(tmp_path), b"\xff.jinja"), "wb") as file:
        file.write(OTHER.encode())
    (row,) = rows_of(tmp_path)
    assert row.id.endswith("\\udcff.jinja")
    assert json.loads(row.to_json())["id"] == row.id


def test_lone_surrogates_in_a_template() -> None:
    line = b'{"id": "x", "tokenizer_config": {"chat_template": "\\ud800"}}'
    (row,) = rows_of("-", stdin=io.BytesIO(line))
    assert row.status == "probed"
    json.loads(row.to_json())


def test_limits_are_no_verdict(tmp_path: Path) -> None:
    (row,) = rows_of(write(tmp_path, {"x.jinja": HUGE}))
    assert (row.status, row.summary) == ("not_evaluated", None)
    assert row.error is not None
    assert row.error["type"] == "LimitExceeded"


# How it is run


def test_arguments() -> None:
    for options in ({"jobs": 0}, {"limit": 0}):
        with pytest.raises(InputError, match="must be at least 1"):
            scan([], **options)  # type: ignore[arg-type]


def test_a_limit_ends_it(tmp_path: Path) -> None:
    write(tmp_path, {f"{number}.jinja": OTHER for number in range(5)})
    assert len(rows_of(tmp_path, limit=3)) == 3


def test_any_executor(tmp_path: Path) -> None:
    write(tmp_path, {"a.jinja": OTHER, "b.jinja": TEMPLATE})
    with ThreadPoolExecutor(2) as pool:
        rows = rows_of(tmp_path, executor=pool)
    assert [row.status for row in rows] == ["probed", "probed"]


def test_a_lost_machine_costs_a_second_attempt(tmp_path: Path) -> None:
    write(tmp_path, {"a.jinja": OTHER, "b.jinja": OTHER})
    once = Unreliable(1)
    assert [row.status for row in rows_of(tmp_path, executor=once)] == ["probed", "probed"]
    assert once.calls == [OTHER, OTHER]
    rows = rows_of(tmp_path, executor=Unreliable(9))
    assert [row.status for row in rows] == ["not_evaluated", "not_evaluated"]
    assert rows[1].error == {"type": "ConnectionError", "message": "the machine is gone"}


def test_an_executor_that_is_gone_ends_the_scan(tmp_path: Path) -> None:
    """However it tells: it takes nothing, its calls are cancelled, its processes are broken."""
    write(tmp_path, {"a.jinja": OTHER, "b.jinja": OTHER, "c.jinja": TEMPLATE})
    for executor in (Closed(), Gone(0, CancelledError), Gone(0, BrokenProcessPool)):
        with pytest.raises(WorkerError, match="the executor is lost") as lost:
            rows_of(tmp_path, executor=executor)
        assert lost.value.details["reason"] == "lost"
    for error in (None, CancelledError, BrokenProcessPool):
        rows = []
        with pytest.raises(WorkerError, match="the executor is lost"):  # noqa: PT012
            for row in scan([tmp_path], executor=Gone(1, error), depth="quick"):
                rows.append(row)
        assert [row.status for row in rows] == ["probed", "probed"], "what was answered stays"


def test_a_pool_that_cannot_start_is_lost(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"a.jinja": OTHER})
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(WorkerError, match="the executor is lost") as lost:
        list(scan([tmp_path], jobs=1, depth="quick"))
    assert "FileNotFoundError" in lost.value.message


GOOD = evaluate(OTHER, "quick")
FORGED: list[Any] = [
    *(None, 5, [], {}, "answer", [1, 2, 3], {"summary": {}}),
    *(GOOD | {"summary": summary} for summary in (None, [], {}, {**GOOD["summary"], "bytes": "many"}, "x")),
    GOOD | {"summary": {**GOOD["summary"], "tool": "another"}},
    GOOD | {"summary": {**GOOD["summary"], "family": "x" * 600_000}},
    *(GOOD | {"limited": limited} for limited in (5, [], {}, True)),
    *(GOOD | {"detail": detail} for detail in (None, 5, "", "ü", "not base64!", "AAAA", GOOD["detail"][:-8])),
    GOOD | {"detail": b64encode(zlib.compress(bytes(100_000_000), 9)).decode()},
    {key: value for key, value in GOOD.items() if key != "limited"},
]


@pytest.mark.parametrize("answer", FORGED, ids=range(len(FORGED)))
def test_an_answer_that_no_probe_gives_costs_one_template(tmp_path: Path, answer: Any) -> None:
    write(tmp_path, {"a.jinja": OTHER, "b.jinja": TEMPLATE})
    rows = rows_of(tmp_path, executor=Forging(OTHER, answer))
    assert [row.status for row in rows] == ["not_evaluated", "probed"]
    assert rows[0].error is not None
    assert "no probe answers" in rows[0].error["message"]


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    """Workers are killed all the time while a scan runs."""
    for number in range(12):
        write(tmp_path, {f"{number:02}.jinja": f"{{# {number} #}}{OTHER}"})
    rows = []
    kills = 0
    for row in scan([tmp_path], jobs=2, depth="full"):
        rows.append(row)
        if len(rows) % 5 == 1:
            kills += kill_workers(os.getpid())
    assert kills
    assert [row.status for row in rows] == ["probed"] * 12
    assert [os.path.basename(row.id) for row in rows] == [f"{number:02}.jinja" for number in range(12)]


def kill_workers(parent: int) -> int:
    """Kills the worker processes of `parent`; how many there were."""
    killed = 0
    for file in Path(f"/proc/{parent}/task").glob("*/children"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # of a thread or process that has just ended
            for pid in map(int, file.read_text().split()):
                if b"jinjarun.isolation" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    os.kill(pid, signal.SIGKILL)
                    killed += 1
    return killed


def test_memory_is_flat(tmp_path: Path) -> None:
    """Rows come out as the stream goes in: it is never ahead by more than the window."""
    line = json.dumps({"id": "x", "tokenizer_config": CONFIG}).encode() + b"\n"

    class Stream(io.RawIOBase):
        given = 0

        def readline(self, size: int | None = -1) -> bytes:  # type: ignore[override]
            self.given += 1
            return line if self.given <= 20_000 else b""

    stream = Stream()
    ahead = 0
    for number, _ in enumerate(scan(["-"], stdin=stream, executor=Here(), depth="quick")):  # type: ignore[arg-type]
        ahead = max(ahead, stream.given - number)
    assert stream.given == 20_001
    assert ahead < 10


# What is kept


def test_a_cache_answers_for_the_same_tool_and_depth(tmp_path: Path) -> None:
    write(tmp_path, {"t/a.jinja": OTHER, "t/b.jinja": HUGE})
    calls = []
    for depth in ("quick", "quick", "full"):
        here = Here()
        rows = rows_of(tmp_path / "t", executor=here, cache=tmp_path / "cache", depth=depth)
        calls.append(len(here.calls))
        assert [row.status for row in rows] == ["probed", "not_evaluated"]
        assert rows[0].summary is not None
        assert rows[0].summary.tool.endswith(depth)
    assert calls == [2, 1, 2], "what hit a limit is asked again"


def test_a_damaged_cache_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, {"x.jinja": OTHER, f"cache/{FILE}": b"not a database, but long enough to be looked at" * 50})
    with pytest.raises(InputError, match="is damaged"):
        rows_of(tmp_path, cache=tmp_path / "cache")


@pytest.mark.parametrize("text", ["", "{}", "null", "[" * 100_000, '{"tool": 5}', b"\xff", 7, '{"tool": "another"}'])
def test_a_row_of_the_cache_that_is_no_summary_is_asked_again(tmp_path: Path, text: Any) -> None:
    write(tmp_path, {"t/a.jinja": OTHER})
    cache = tmp_path / "cache"
    (first,) = rows_of(tmp_path / "t", cache=cache)
    with contextlib.closing(sqlite3.connect(cache / FILE, isolation_level=None)) as database:
        database.execute("UPDATE answers SET summary = ?, detail = 'no bytes'", (text,))
    here = Here()
    (again,) = rows_of(tmp_path / "t", cache=cache, executor=here)
    assert here.calls == [OTHER]
    assert again.to_json() == first.to_json()
    here = Here()
    rows_of(tmp_path / "t", cache=cache, executor=here)
    assert here.calls == [], "and kept"


def test_a_damaged_cache_is_closed(tmp_path: Path) -> None:
    write(tmp_path, {"x.jinja": OTHER, f"cache/{FILE}": b"not a database, but long enough to be looked at" * 50})
    before = set(os.listdir("/dev/fd"))
    with pytest.raises(InputError, match="is damaged"):
        Answers(str(tmp_path / "cache"), "tool")
    assert set(os.listdir("/dev/fd")) == before


OWNER = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from probes.scanner.temporary import temporary_folder
with temporary_folder() as folder:
    print(folder, flush=True)
    input()
"""


def test_temporary_folders_of_the_dead_are_cleared_away(tmp_path: Path) -> None:
    """Those of the living stay, and so does what is not ours."""
    (tmp_path / "other").mkdir()
    (tmp_path / "jinjarun-tmp-file").write_text("no folder")
    (tmp_path / "jinjarun-tmp-link").symlink_to("other")
    command = [sys.executable, "-c", OWNER, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        subprocess.Popen(command, cwd=ROOT, **pipes) as killed,  # type: ignore[call-overload]
        subprocess.Popen(command, cwd=ROOT, **pipes) as living,  # type: ignore[call-overload]
    ):
        left, owned = (Path(process.stdout.readline().strip()) for process in (killed, living))
        write(left, {"answers": "data"})
        killed.kill()
        killed.wait()
        assert left.exists()
        with subprocess.Popen(command, cwd=ROOT, **pipes) as third:  # type: ignore[call-overload]
            new = Path(third.stdout.readline().strip())
            assert not left.exists()
            assert owned.exists()
            assert new.exists()
            third.communicate("\n")
        assert not new.exists()
        living.communicate("\n")
    assert sorted(os.listdir(tmp_path)) == ["jinjarun-tmp-file", "jinjarun-tmp-link", "other"]


def test_what_is_done_is_kept_when_it_is_closed(tmp_path: Path) -> None:
    write(tmp_path, {f"t/{number}.jinja": f"{number}" for number in range(5)})
    rows = scan([tmp_path / "t"], executor=Here(), cache=tmp_path / "cache", depth="quick")
    next(rows)
    rows.close()
    here = Here()
    assert len(rows_of(tmp_path / "t", executor=here, cache=tmp_path / "cache")) == 5
    assert "0" not in here.calls


def test_rows_of_an_earlier_scan_are_not_asked_again(tmp_path: Path) -> None:
    write(tmp_path, {"a.jinja": OTHER, "b.jinja": TEMPLATE})
    known = [Row(**{**vars_of(row), "detail": lambda: None}) for row in rows_of(tmp_path)][:1]
    here = Here()
    assert len(rows_of(tmp_path, executor=here, known=known)) == 2
    assert here.calls == [TEMPLATE]


def vars_of(row: Row) -> dict[str, Any]:
    return {name: getattr(row, name) for name in Row.__slots__}


# The command


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "scan")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path / "files", {"a.jinja": OTHER, "b.jinja": "{% if %}", "c/tokenizer_config.json": {}})


def test_the_command(run: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "rows.jsonl"
    code, printed, said = run(folder, "--depth", "quick", "--jobs", "1", "--out", out)
    assert (code, printed) == (program.CLEAN, "")
    assert said == f"{out}: 3 files, 2 distinct templates, 0 families, 1 without a template\n"
    with open(out, "rb") as file:
        assert [row.status for row in read(file)] == ["probed", "probed", "no_template"]
    code, printed, said = run(folder, "--depth", "quick", "--jobs", "1", "--json")
    assert json.loads(printed)["summary"]["files"] == 3
    assert said == ""


def test_exit_codes(run: Run, folder: Path, tmp_path: Path) -> None:
    full = ["--jobs", "1", "--cache", str(tmp_path / "cache")]
    assert run(folder, *full)[0] == program.FINDING, "b.jinja does not parse"
    assert run(folder, *full, "--fail-on", "never")[0] == program.CLEAN
    write(folder, {"x.jinja": b"\xff"})
    assert run(folder / "x.jinja", *full)[0] == program.FINDING
    assert run(folder / "c", *full)[0] == program.CLEAN


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--out", "x.unknown"], "names no format"),
        (["--resume"], "--resume needs"),
        (["--resume", "--out", "x.csv"], "--resume needs"),
        (["--jobs", "0"], "jobs must be at least 1"),
        (["--executor", "ray://x"], "is no executor"),
        (["--out", "/nowhere/x.jsonl"], "cannot write"),
        (["--out", "/nowhere/x.json"], "cannot write"),
    ],
)
def test_wrong_usage(run: Run, folder: Path, arguments: list[str], message: str) -> None:
    code, _, said = run(folder, "--depth", "quick", *arguments)
    assert code == program.UNUSABLE
    assert message in said
    assert len(said.splitlines()) == 1


def process(*arguments: str | Path, **options: Any) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "probes.cli", "scan", *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options)


@pytest.fixture
def many(tmp_path: Path) -> Path:
    return write(tmp_path / "many", {f"{number:03}.jinja": f"{{# {number} #}}{OTHER}" for number in range(60)})


def wait_for_rows(out: Path, count: int, scan: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + 120
    while not out.exists() or out.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline
        assert scan.poll() is None
        time.sleep(0.02)


def test_a_killed_scan_is_resumed(many: Path, tmp_path: Path, run: Run) -> None:
    """Twice killed, once stopped, half a line at the end of the file: nothing is lost, nothing stands twice."""
    out = tmp_path / "rows.jsonl"
    done = 0
    for end, resume in ((signal.SIGKILL, []), (signal.SIGKILL, ["--resume"]), (signal.SIGINT, ["--resume"])):
        scan = process(many, "--jobs", "1", "--out", out, *resume)
        wait_for_rows(out, done + 5, scan)
        scan.send_signal(end)
        scan.communicate()
        done = out.read_bytes().count(b"\n")
    with open(out, "ab") as file:
        file.write(b'{"id": "half a li')
    code, _, said = run(many, "--jobs", "2", "--out", out, "--resume", "--fail-on", "never")
    assert code == program.CLEAN, said
    with open(out, "rb") as file:
        rows = list(read(file))
    assert [os.path.basename(row.id) for row in rows] == [f"{number:03}.jinja" for number in range(60)]
    assert {row.status for row in rows} == {"probed"}
    assert sorted(os.listdir(tmp_path)) == ["many", "rows.jsonl"]


@pytest.mark.parametrize("ending", ["jsonl", "json"])
def test_ctrl_c_keeps_what_is_done(many: Path, tmp_path: Path, ending: str) -> None:
    out, cache = tmp_path / f"rows.{ending}", tmp_path / "cache"
    scan = process(many, "--jobs", "1", "--out", out, "--cache", cache)
    deadline = time.monotonic() + 120
    while answers(cache) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    scan.send_signal(signal.SIGINT)
    _, said = scan.communicate(timeout=60)
    assert scan.returncode == program.INTERRUPTED
    assert said == b"jinjarun: stopped; what is done is kept\n"
    text = out.read_text()
    rows = [json.loads(line) for line in text.splitlines()] if ending == "jsonl" else json.loads(text)["rows"]
    assert 0 < len(rows) < 60
    assert answers(cache) >= len(rows)


def answers(cache: Path) -> int:
    if not (cache / FILE).exists():
        return 0
    connection = sqlite3.connect(cache / FILE, timeout=10)
    try:
        return int(connection.execute("SELECT count(*) FROM answers").fetchone()[0])
    except sqlite3.OperationalError:
        return 0
    finally:
        connection.close()


def test_a_full_disk_leaves_whole_rows(tmp_path: Path, many: Path) -> None:
    """RLIMIT_FSIZE stands for the disk: the cache and the answers are below it, the rows are not."""
    out = tmp_path / "rows.jsonl"
    limited = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
        "from probes.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    records = b"".join(json.dumps({"id": f"{n}", "tokenizer_config": CONFIG}).encode() + b"\n" for n in range(1000))
    scan = subprocess.run(
        [sys.executable, "-c", limited, "scan", "-", "--depth", "quick", "--jobs", "1", "--out", str(out)],
        input=records,
        capture_output=True,
        cwd=ROOT,
        check=False,
    )
    assert scan.returncode == program.UNUSABLE
    assert scan.stderr.startswith(b"jinjarun: cannot write: ")
    assert str(out).encode() in scan.stderr
    lines = out.read_bytes().splitlines(keepends=True)
    assert 10 < len(lines) < 1000
    assert [json.loads(line)["id"] for line in lines] == [str(number) for number in range(len(lines))]
    assert lines[-1].endswith(b"\n")


def test_lines_take_back_what_is_not_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "x"
    lines = Lines(str(path))
    lines.write(b"whole\n")
    real = os.write
    room = iter([3])

    def full(file: int, data: Any) -> int:
        for size in room:
            return real(file, data[:size])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space left"):
        lines.write(b"not whole\n")
    monkeypatch.undo()
    lines.close()
    assert path.read_bytes() == b"whole\n"


def test_a_document_is_whole_or_as_before(tmp_path: Path) -> None:
    path = tmp_path / "x.html"
    path.write_text("before")
    with pytest.raises(RuntimeError), whole_file(str(path)) as file:  # noqa: PT012
        file.write(b"half")
        raise RuntimeError
    assert path.read_text() == "before"
    with whole_file(str(path)) as file:
        file.write(b"after")
    assert path.read_text() == "after"
    assert os.listdir(tmp_path) == ["x.html"]


def test_progress_on_a_terminal_only(folder: Path, run: Run) -> None:
    class Terminal(io.StringIO):
        pass

    terminal = Terminal()
    rows = [Row(f"{number}", "jinja_file", "no_template") for number in range(3)]
    assert list(Progress(terminal, 3).watching(rows)) == rows
    assert terminal.getvalue().startswith("\r\x1b[K[")
    assert terminal.getvalue().endswith("\r\x1b[K")
    assert run(folder, "--depth", "quick", "--fail-on", "never")[2] == ""
    assert progress(300, 600, 30.0) == "[##########..........] 300 of 600 files, 10/s, 0:30 left"
    assert progress(3, None, 2.0) == "3 files, 1.5/s"
    assert [duration(seconds) for seconds in (0, 61, 3723)] == ["0:00", "1:01", "1:02:03"]


def test_a_second_ctrl_c_is_not_held_up() -> None:
    def items() -> Iterator[int]:
        yield 1
        yield 2

    stoppable = Stoppable(items())  # type: ignore[arg-type]
    seen = []
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        for item in stoppable:
            seen.append(item)
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
    assert seen == [1]
    assert stoppable.stopped


# A cluster


def test_dask(many: Path) -> None:
    """A local cluster of two processes, one of which is killed while it works."""
    distributed = pytest.importorskip("distributed")
    config = {"distributed.admin.tick.limit": "1h", "distributed.comm.timeouts.connect": "60s"}
    import dask  # noqa: PLC0415

    with (
        dask.config.set(config),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        command.dask_executor(cluster.scheduler_address.replace("tcp://", "dask://")) as executor,
    ):
        rows = []
        for row in scan([many], executor=executor, jobs=8, depth="full"):
            rows.append(row)
            if len(rows) == 5:
                os.kill(next(iter(cluster.workers.values())).pid, signal.SIGKILL)
    assert [os.path.basename(row.id) for row in rows] == [f"{number:03}.jinja" for number in range(60)]
    assert Counter(row.status for row in rows) == {"probed": 60}


@contextlib.contextmanager
def dask(folder: Path) -> Iterator[tuple[str, subprocess.Popen[bytes], subprocess.Popen[bytes]]]:
    """A scheduler and its only worker, each a process: the scheduler's address, and both."""
    pytest.importorskip("distributed")
    known, local = folder / "scheduler.json", ["--host", "127.0.0.1", "--port", "0"]
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", *local, "--scheduler-file", str(known)]
    worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--nthreads", "1", "--no-nanny"]
    quiet: dict[str, Any] = {"cwd": ROOT, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with contextlib.ExitStack() as ends:
        running = []
        for command in ([*scheduler, "--no-dashboard"], [*worker, "--no-dashboard", "--scheduler-file", str(known)]):
            while running and not (known.exists() and known.read_text().endswith("}")):
                assert running[0].poll() is None
                time.sleep(0.05)
            process = ends.enter_context(subprocess.Popen(command, **quiet))
            ends.callback(process.kill)
            running.append(process)
        yield json.loads(known.read_text())["address"].replace("tcp://", "dask://"), running[0], running[1]


def test_a_scheduler_that_dies_ends_the_scan(many: Path, tmp_path: Path, run: Run) -> None:
    """With a code of its own; what was answered stays, and the scan goes on to the same bytes as an undisturbed one."""
    out, whole = tmp_path / "rows.jsonl", tmp_path / "whole.jsonl"
    with dask(tmp_path) as (address, scheduler, _):
        scanning = process(many, "--executor", address, "--depth", "quick", "--out", out)
        wait_for_rows(out, 5, scanning)
        scheduler.kill()
        _, said = scanning.communicate()
    assert scanning.returncode == command.LOST
    assert said.startswith(b"jinjarun: worker error: the executor is lost (")
    assert said.endswith(b"; what is done is kept, and --resume goes on\n")
    assert said.count(b"\n") == 1
    done = out.read_bytes().count(b"\n")
    assert 5 <= done < 60
    assert run(many, "--depth", "quick", "--out", whole)[0] == program.CLEAN
    assert whole.read_bytes().startswith(out.read_bytes())
    assert run(many, "--depth", "quick", "--out", out, "--resume")[0] == program.CLEAN
    assert whole.read_bytes() == out.read_bytes()


def test_a_cluster_without_workers_ends_the_scan(
    many: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    with dask(tmp_path) as (address, _, worker):
        with command.dask_executor(address) as executor:
            executor.submit(len, "abc").result()
            worker.kill()
        monkeypatch.setattr(command, "LOOK_SECONDS", 0.1)
        code, _, said = run(many, "--executor", address, "--depth", "quick", "--format", "jsonl")
    assert code == command.LOST
    assert "the cluster has no workers any more" in said


# Real files


@needs_shared
def test_real_configurations(tmp_path: Path) -> None:
    """Every configuration holds what is recorded of it; the templates need not be probed for that."""
    recorded = {
        row["config"]: row for row in map(json.loads, (SHARED / "corpus" / "configs.jsonl").read_text().splitlines())
    }
    found: dict[str, list[Any]] = {name: [] for name in recorded}
    for one in find([str(SHARED / "corpus" / "configs")]):
        found[Path(one.id).parent.name].append(one)
    for name, row in recorded.items():
        assert [one.name for one in found[name] if one.text is not None] == row["names"], name
        assert {one.form for one in found[name]} == {row["form"]}, name


@needs_shared
def test_hostile_files_beside_good_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With a second of CPU each, which is ten times what a good one takes."""
    monkeypatch.setattr(worker, "CPU_SECONDS", 1)
    sys.path.insert(0, str(SHARED / "hostile"))
    try:
        import read as hostile  # type: ignore[import-not-found]  # noqa: PLC0415
    finally:
        sys.path.pop(0)
    good = {f"{number:03}-good.jinja": f"{OTHER}{{# {number} #}}" for number in range(0, 147, 7)}
    bad = {
        f"{number:03}-{row['id']}.jinja": row["template"].encode("utf-8", "surrogatepass")
        for number, row in enumerate(hostile.rows(SHARED / "hostile" / "hostile.jsonl"))
    }
    write(tmp_path, {**good, **bad})
    rows = list(scan([tmp_path], depth="quick"))
    assert [os.path.basename(row.id) for row in rows] == sorted([*good, *bad])
    assert all(row.status != "no_template" for row in rows)
    expected = summarise(probes.probe(OTHER, depth="quick"), "quick").model_dump(exclude={"bytes"})
    for row in rows:
        if row.id.endswith("-good.jinja"):
            assert row.summary is not None
            assert row.summary.model_dump(exclude={"bytes"}) == expected
