"""Which file wins: the table of the readers, and transformers itself on the same folders."""

from __future__ import annotations

import itertools
import json
from typing import TYPE_CHECKING, Any

import pytest

from jinjarun.sources import open_source
from jinjarun.sources.precedence import READS_AS
from tests.sources.support import refused, unusable, write

if TYPE_CHECKING:
    from pathlib import Path

CONFIG: dict[str, Any] = {"chat_template": "config"}
PLACES: dict[str, dict[str, Any]] = {
    "jinja": {"chat_template.jinja": "jinja"},
    "additional": {"additional_chat_templates/tool_use.jinja": "additional"},
    "additional default": {"additional_chat_templates/default.jinja": "additional default"},
    "config": {"tokenizer_config.json": CONFIG},
    "config null": {"tokenizer_config.json": {"chat_template": None}},
    "config list": {
        "tokenizer_config.json": {
            "chat_template": [
                {"name": "default", "template": "list"},
                {"name": "tool_use", "template": "list tools"},
                {"name": "r-a.g", "template": "list rag"},
            ]
        }
    },
    "config object": {"tokenizer_config.json": {"chat_template": {"default": "object", "tool_use": "object tools"}}},
    "config empty": {"tokenizer_config.json": {}},
    "config other": {"tokenizer_config.json": {"bos_token": "<s>"}},
    "legacy": {"chat_template.json": {"chat_template": "legacy"}},
    "legacy null": {"chat_template.json": {"chat_template": None}},
    "legacy absent": {"chat_template.json": {}},
    "processor": {"processor_config.json": {"chat_template": "processor"}},
    "processor null": {"processor_config.json": {"chat_template": None}},
}
CHOICES = [
    ["", "jinja"],
    ["", "additional", "additional default"],
    ["", "config", "config null", "config list", "config object", "config empty", "config other"],
    ["", "legacy", "legacy null", "legacy absent"],
    ["", "processor", "processor null"],
]
FOLDERS = [tuple(place for place in choice if place) for choice in itertools.product(*CHOICES)]


def make(folder: Path, places: tuple[str, ...]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for place in places:
        write(folder, PLACES[place])
    return folder


def chosen(folder: Path, reads_as: str) -> dict[str, str]:
    source = open_source(folder, reads_as=reads_as)
    return {name: found.text for name, found in source.chosen.items()}


@pytest.mark.parametrize(
    ("reads_as", "places", "expected"),
    [
        ("transformers", ("config",), {"default": "config"}),
        ("transformers", ("jinja", "config"), {"default": "jinja"}),
        ("transformers", ("jinja", "additional", "config"), {"default": "jinja", "tool_use": "additional"}),
        ("transformers", ("jinja", "additional default"), {"default": "additional default"}),
        ("transformers", ("additional", "config"), {"tool_use": "additional"}),
        ("transformers", ("config null", "legacy"), {"default": "legacy"}),
        ("transformers", ("config", "legacy", "processor"), {"default": "config"}),
        ("transformers:tokenizer", ("legacy", "processor"), {}),
        ("transformers:processor", ("config", "jinja", "legacy"), {"default": "legacy"}),
        ("transformers:processor", ("jinja", "legacy", "processor"), {"default": "processor"}),
        ("transformers:processor", ("jinja", "processor null"), {"default": "jinja"}),
        ("transformers:processor", ("jinja", "additional default"), {"default": "jinja"}),
        ("transformers:processor", ("jinja", "legacy null"), {}),
        ("transformers:processor", ("config",), {}),
        ("llama.cpp", ("jinja", "config"), {"default": "config"}),
        ("llama.cpp", ("jinja", "config other"), {"default": "jinja"}),
        ("llama.cpp", ("jinja", "additional", "config other"), {"default": "jinja", "tool_use": "additional"}),
        ("llama.cpp", ("additional", "config other"), {}),
        ("llama.cpp", ("jinja", "config null"), {}),
        ("llama.cpp", ("jinja", "config object"), {}),
        ("llama.cpp", ("jinja", "config empty"), {}),
        ("llama.cpp", ("jinja",), {}),
        ("llama.cpp", ("jinja", "legacy", "config other"), {"default": "jinja"}),
        ("llama.cpp", ("legacy", "config other"), {"default": "legacy"}),
        ("llama.cpp", ("processor", "config other"), {}),
        ("llama.cpp", ("config list",), {"default": "list", "tool_use": "list tools", "r_a_g": "list rag"}),
    ],
)
def test_table(tmp_path: Path, reads_as: str, places: tuple[str, ...], expected: dict[str, str]) -> None:
    assert chosen(make(tmp_path, places), reads_as) == expected


def test_a_processor_fails_on_both_formats(tmp_path: Path) -> None:
    source = open_source(make(tmp_path, ("legacy", "additional")), reads_as="transformers:processor")
    assert "both there" in unusable(source).details["reason"]
    lacking = open_source(make(tmp_path / "b", ("legacy absent", "jinja")), reads_as="transformers:processor")
    assert "chat_template.json has no chat_template" in unusable(lacking).details["reason"]


def test_every_text_is_a_candidate_and_every_reader_has_its_own(tmp_path: Path) -> None:
    source = open_source(make(tmp_path, ("jinja", "config", "legacy", "processor")))
    assert {found.text for found in source.candidates} == {"jinja", "config", "legacy", "processor"}
    readings = {reader: chosen["default"].text for reader, chosen in source.readings.items()}
    assert readings == {
        "transformers tokenizer": "jinja",
        "transformers processor": "processor",
        "llama.cpp converter": "config",
    }
    assert source.report()["path"] == str(tmp_path / "chat_template.jinja")
    assert source.report()["kind"] == "model_folder"


def test_a_missing_template_says_who_does_not_read_what_is_there(tmp_path: Path) -> None:
    error = unusable(open_source(make(tmp_path, ("jinja",)), reads_as="llama.cpp"))
    assert "llama.cpp converter does not read" in error.details["hint"]
    assert "chat_template.jinja" in error.details["hint"]


def test_unknown_reader(tmp_path: Path) -> None:
    assert "transformers:processor" in refused(tmp_path, reads_as="vllm").details["hint"]


@pytest.fixture(scope="module")
def tokenizer_json() -> str:
    tokenizers = pytest.importorskip("tokenizers")
    return str(tokenizers.Tokenizer(tokenizers.models.WordLevel({"a": 0, "<unk>": 1}, unk_token="<unk>")).to_str())


@pytest.mark.filterwarnings("ignore:unclosed file:ResourceWarning")
@pytest.mark.parametrize("places", FOLDERS, ids=" ".join)
def test_transformers_agrees(tmp_path: Path, places: tuple[str, ...], tokenizer_json: str) -> None:
    """Every folder, by transformers' own loading code."""
    transformers = pytest.importorskip("transformers")
    folder = write(make(tmp_path, places), {"tokenizer.json": tokenizer_json})
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder, local_files_only=True)
    assert chosen(folder, "transformers:tokenizer") == named(tokenizer.chat_template)
    source = open_source(folder, reads_as="transformers:processor")
    try:
        settings, _ = transformers.ProcessorMixin.get_processor_dict(folder, local_files_only=True)
    except (ValueError, KeyError):
        assert source.refusal is not None
    else:
        assert source.refusal is None
        assert {name: found.text for name, found in source.chosen.items()} == named(settings.get("chat_template"))


def named(value: Any) -> dict[str, str]:
    return {} if value is None else {"default": value} if isinstance(value, str) else dict(value)


@pytest.mark.parametrize("places", FOLDERS, ids=" ".join)
def test_gguf_agrees(tmp_path: Path, places: tuple[str, ...]) -> None:
    """The same folders by the class of gguf-py that llama.cpp's converter uses."""
    vocab = pytest.importorskip("gguf.vocab")
    folder = make(tmp_path, places)
    found = vocab.SpecialVocab(folder).chat_template
    if isinstance(found, list):
        found = {"".join(c if c.isalnum() else "_" for c in item["name"]): item["template"] for item in found}
    assert chosen(folder, "llama.cpp") == named(found)


def test_every_reader_has_a_row() -> None:
    assert set(READS_AS) == {"transformers", "transformers:tokenizer", "transformers:processor", "llama.cpp"}


def test_lists(tmp_path: Path) -> None:
    def place(value: Any) -> Any:
        (tmp_path / "tokenizer_config.json").write_text(json.dumps({"chat_template": value}))
        return refused(tmp_path).details["place"]

    assert place(5) == "chat_template"
    assert place(["a"]) == "chat_template[0]"
    assert place([{"name": "a"}]) == "chat_template[0].template"
    assert place([{"template": "a"}]) == "chat_template[0].name"
    assert place([{"name": 1, "template": "a"}]) == "chat_template[0].name"
    assert place([{"name": "a", "template": None}]) == "chat_template[0].template"
    assert place({"default": {}}) == "chat_template.default"


def test_one_name_twice(tmp_path: Path) -> None:
    items = [{"name": "default", "template": "first"}, {"name": "default", "template": "second"}]
    source = open_source(write(tmp_path, {"tokenizer_config.json": {"chat_template": items}}))
    assert source.templates == {"default": "second"}
    assert "two templates called 'default'" in source.notes[0].message


def test_several_and_no_default(tmp_path: Path) -> None:
    items = [{"name": "tool_use", "template": "tools"}, {"name": "rag", "template": "rag"}]
    write(tmp_path, {"tokenizer_config.json": {"chat_template": items}})
    source = open_source(tmp_path)
    assert source.default is None
    assert 'none is called "default"' in unusable(source).details["reason"]
    assert source.template("rag") == "rag"
    assert "it has tool_use, rag" in unusable(source, "other").details["hint"]
    assert open_source(tmp_path, reads_as="llama.cpp").template() == "tools"
