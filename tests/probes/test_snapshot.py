"""Snapshots: the same bytes each time, what a change shows, and the command."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest

import probes
from jinjarun.dialects import dialect_named
from jinjarun.errors import SourceError, TemplateSyntaxError
from jinjarun.sources import open_source
from probes.chats.corpus import corpus_folder
from probes.chats.named import CHATS, conversation
from probes.comparison.snapshot import Snapshot, changes, keep, read_snapshot, snapshot, snapshot_file
from probes.rendering.renders import PATHS, Renders
from tests.families import WITH_TEMPLATE, family
from tests.probes.conftest import Run

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "snapshot")


@pytest.fixture
def template(tmp_path: Path) -> Path:
    path = tmp_path / "mine.jinja"
    path.write_text(CHATML, encoding="utf-8")
    return path


def test_it_is_public() -> None:
    assert probes.snapshot is snapshot
    assert probes.Snapshot is Snapshot


@pytest.mark.parametrize("name", WITH_TEMPLATE)
def test_every_prompt_of_a_family_is_kept_as_it_is(name: str) -> None:
    found = family(name)
    taken = snapshot(found.source, **found.tokens)
    renders = Renders(found.source, **found.tokens)
    assert list(taken.prompts) == sorted(CHATS)
    for chat, prompts in taken.prompts.items():
        assert sorted(path for prompt in prompts for path in prompt.paths) == sorted(PATHS)
        for prompt in prompts:
            outcome = renders.render(prompt.paths[0], conversation(chat))
            assert (prompt.error is None) == outcome.ok
            assert outcome.text is None or "".join(prompt.text or ()) == outcome.text


def test_the_same_bytes_each_time_and_back_again() -> None:
    first, second = (snapshot(CHATML).to_json() for _ in range(2))
    assert first == second
    assert first.endswith("}\n")
    assert Snapshot.model_validate_json(first).to_json() == first


def test_what_stands_in_the_file() -> None:
    data = json.loads(snapshot(CHATML, eos_token="<|im_end|>").to_json())
    assert list(data) == ["format", "made_with", "caps", "observed", "prompts"]
    assert data["made_with"]["eos_token"] == "<|im_end|>"
    assert data["made_with"]["llama.cpp"] == dialect_named("llama.cpp").version
    assert data["caps"]["supports_tools"] is False
    assert data["observed"]["one_text_part"] == (
        "no, llama.cpp:llama-server: yes, sglang:chat-completions: yes, vllm:chat-completions: yes"
    )
    assert data["prompts"]["user"] == [
        {
            "paths": list(PATHS),
            "text": ["<|im_start|>user\n", "Reverse a string.<|im_end|>\n", "<|im_start|>assistant\n"],
        }
    ]
    refused = {"paths": ["transformers:apply_chat_template"], "error": "InputError: messages must not be empty"}
    assert refused in data["prompts"]["empty"]


def test_layout_alone_changes_nothing() -> None:
    spread = CHATML.replace("{% endfor %}", "{# a comment #}{%   endfor   %}")
    assert changes(snapshot(CHATML), snapshot(spread)) == []


def test_the_first_difference_of_each_conversation() -> None:
    shouting = CHATML.replace("{{ m.content }}", "{{ m.content | upper if m.role == 'system' else m.content }}")
    found = changes(snapshot(CHATML), snapshot(shouting))
    assert {change.kind for change in found} == {"observed", "prompt"}
    prompts = {change.name: change for change in found if change.kind == "prompt"}
    assert "user" not in prompts
    change = prompts["system-user"]
    assert change.paths == list(PATHS)
    assert change.at == len("<|im_start|>system\nY")
    assert (change.old or "").startswith("<|im_start|>system\nYou are a careful")
    assert (change.new or "").startswith("<|im_start|>system\nYOU ARE A CAREFUL")


def test_a_prompt_that_became_an_error() -> None:
    strict = "{% if messages | length == 2 %}{{ raise_exception('two') }}{% endif %}" + CHATML
    change = next(c for c in changes(snapshot(CHATML), snapshot(strict)) if c.name == "system-user")
    assert change.at is None
    assert change.new == "error: TemplateRaised: two"


def test_capabilities_and_tokens() -> None:
    old, new = snapshot(CHATML), snapshot("{{ tools | tojson if tools }}" + CHATML, bos_token="<s>")
    told = {(c.kind, c.name): (c.old, c.new) for c in changes(old, new) if c.kind != "prompt"}
    assert told["made_with", "bos_token"] == ("", "<s>")
    assert told["caps", "supports_tools"] == ("false", "true")
    assert told["observed", "tools"] == ("no", "yes")


def test_a_template_that_does_not_parse_has_no_snapshot() -> None:
    with pytest.raises(TemplateSyntaxError):
        snapshot("{% if %}")


def test_one_that_a_dialect_alone_reads_has_one() -> None:
    taken = snapshot("{% block a %}{% endblock %}" + CHATML)
    assert taken.caps is None
    assert "caps" not in json.loads(taken.to_json())


def test_where_it_is_kept(tmp_path: Path, template: Path) -> None:
    assert snapshot_file(open_source(template), "default") == f"{template}.snapshot.json"
    assert snapshot_file(open_source(template), "tool use") == f"{template}.tool-use.snapshot.json"
    assert snapshot_file(open_source(template), "default", "kept") == os.path.join("kept", "mine.snapshot.json")
    (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": CHATML}), encoding="utf-8")
    assert snapshot_file(open_source(tmp_path), "default") == str(tmp_path / "chat_template.snapshot.json")
    chatml = open_source("family:chatml", corpus=corpus_folder())
    assert snapshot_file(chatml, "default", "kept") == os.path.join("kept", "chatml.snapshot.json")
    with pytest.raises(SourceError, match="--dir"):
        snapshot_file(chatml, "default")


def test_no_name_leaves_the_folder(tmp_path: Path, template: Path) -> None:
    source = open_source(template, name="../../etc/passwd")
    assert snapshot_file(source, "default", "kept") == os.path.join("kept", "etc--passwd.snapshot.json")


def test_a_file_that_is_no_snapshot(tmp_path: Path) -> None:
    path = tmp_path / "x.snapshot.json"
    for text in ("", "[]", '{"format": 2}', "not JSON"):
        path.write_text(text, encoding="utf-8")
        with pytest.raises(SourceError, match="is no snapshot of this version"):
            read_snapshot(str(path))
        with pytest.raises(SourceError):
            keep(CHATML, "x", str(path))
    assert keep(CHATML, "x", str(path), "update").state == "written"
    assert keep(CHATML, "x", str(path), "check").state == "unchanged"


def test_the_command_writes_checks_and_updates(run: Run, template: Path) -> None:
    kept = f"{template}.snapshot.json"
    assert run("--check", template)[:2] == (
        2,
        f"{template}: no snapshot: {kept} is missing (write it without --check)\n",
    )
    assert not os.path.exists(kept)
    assert run(template) == (0, f"{template}: written to {kept}\n", "")
    before = Path(kept).read_bytes()
    assert run("--check", template) == (0, f"{template}: unchanged\n", "")
    template.write_text(CHATML.replace("<|im_end|>\n{% endfor", "<|im_end|>{% endfor"), encoding="utf-8")
    for mode in ((), ("--check",)):
        code, text, _ = run(*mode, template)
        assert code == 1
        assert text.splitlines()[0] == f"{template}: differs from {kept} (--update accepts it)"
        assert "  user on every path, from character 44\n" in text
        assert "    - " + repr("er\nReverse a string.<|im_end|>\n<|im_start|>assistant\n") in text
        assert Path(kept).read_bytes() == before
        assert all(len(line) < 80 for line in text.splitlines()[1:])
    assert run("--update", template)[:1] == (0,)
    assert Path(kept).read_bytes() != before
    assert run("--check", template)[:1] == (0,)


def test_a_folder_of_templates(run: Run, tmp_path: Path) -> None:
    for name in ("b.jinja", "a.jinja"):
        (tmp_path / name).write_text(CHATML, encoding="utf-8")
    assert run(tmp_path)[0] == 0
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "a.jinja",
        "a.jinja.snapshot.json",
        "b.jinja",
        "b.jinja.snapshot.json",
    ]
    code, text, _ = run("--check", tmp_path, "--json")
    assert code == 0
    assert [(Path(row["template"]).name, row["state"]) for row in json.loads(text)] == [
        ("a.jinja", "unchanged"),
        ("b.jinja", "unchanged"),
    ]
    code, _, complaint = run(tmp_path / "a.jinja", tmp_path / "a.jinja", "--dir", tmp_path / "kept")
    assert code == 2
    assert "would both be kept" in complaint


def test_families_need_a_folder(run: Run, tmp_path: Path) -> None:
    code, _, complaint = run("family:chatml")
    assert code == 2
    assert "--dir" in complaint
    assert run("family:chatml", "--dir", tmp_path / "new" / "folder")[0] == 0
    taken = read_snapshot(str(tmp_path / "new" / "folder" / "chatml.snapshot.json"))
    assert taken.made_with["eos_token"] == "<|im_end|>"


def test_wrong_usage_and_unreadable_input(run: Run, template: Path, tmp_path: Path) -> None:
    assert run("--check", "--update", template)[0] == 2
    assert run("--chek", template)[0] == 2
    assert run()[0] == 2
    code, _, complaint = run(tmp_path / "absent.jinja")
    assert code == 2
    assert "absent.jinja" in complaint
    template.write_text("{% if %}", encoding="utf-8")
    code, _, complaint = run(template)
    assert code == 1
    assert "syntax error" in complaint
    assert not os.path.exists(f"{template}.snapshot.json")
    template.write_text(CHATML, encoding="utf-8")
    Path(f"{template}.snapshot.json").write_text("{}", encoding="utf-8")
    assert run("--check", template)[0] == 2


def test_one_bad_template_does_not_keep_the_others_from_being_checked(run: Run, tmp_path: Path, template: Path) -> None:
    code, text, complaint = run(tmp_path / "absent.jinja", template)
    assert code == 2
    assert "mine.jinja: written" in text
    assert "absent.jinja" in complaint


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_that_cannot_be_written(run: Run, tmp_path: Path, template: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        assert run(template)[0] == 2
    finally:
        tmp_path.chmod(0o700)
