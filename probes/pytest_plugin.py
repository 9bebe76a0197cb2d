"""A pytest plugin: `pytest --chat-template PATH` collects one item for each law and template.

Templates are also taken from `pyproject.toml`, where pytest is run without naming files:

    [tool.jinjarun]
    templates = ["templates/*.jinja", "my-model/"]
    max_examples = 50

A test that takes the fixture `chat_template` runs once for each of them. Nothing of jinjarun is imported, and nothing
is collected, in a run that names no template.
"""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from hypothesis.strategies import SearchStrategy

    from probes.chats.messages import Chat
    from probes.fuzzer.fuzz import Counterexample, FuzzReport
    from probes.laws import Subject

EXAMPLES = 50
KEYS = {"templates": list, "max_examples": int, "seed": int, "laws": list, "strict": bool}
"""What [tool.jinjarun] may hold."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("jinjarun", "laws of chat templates")
    group.addoption(
        "--chat-template",
        action="append",
        default=[],
        metavar="PATH",
        help="a template, or a folder of them, that must keep every law of `jinjarun fuzz`",
    )
    group.addoption("--chat-template-law", action="append", default=[], metavar="LAW", help="only this law")
    group.addoption("--chat-template-examples", type=int, metavar="N", help=f"conversations each (default {EXAMPLES})")
    group.addoption("--chat-template-seed", type=int, metavar="N", help="another seed makes up other conversations")
    group.addoption("--chat-template-strict", action="store_true", help="fail for what a template is known to do, too")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which templates to ask, and how; from the command line, else from pyproject.toml."""

    targets: tuple[str, ...]
    laws: tuple[str, ...]
    examples: int
    seed: int
    strict: bool


def wanted(config: pytest.Config) -> Wanted:
    given = config.getoption("--chat-template")
    table = _table(config.rootpath)
    patterns = [] if given or config.args_source is pytest.Config.ArgsSource.ARGS else table.get("templates", [])
    examples, seed = config.getoption("--chat-template-examples"), config.getoption("--chat-template-seed")
    return Wanted(
        targets=tuple(given or _found(config.rootpath, patterns)),
        laws=tuple(config.getoption("--chat-template-law") or table.get("laws", [])),
        examples=table.get("max_examples", EXAMPLES) if examples is None else examples,
        seed=table.get("seed", 0) if seed is None else seed,
        strict=config.getoption("--chat-template-strict") or table.get("strict", False),
    )


def _table(root: Path) -> dict[str, Any]:
    path = root / "pyproject.toml"
    if not path.is_file():
        return {}
    table: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8")).get("tool", {}).get("jinjarun", {})
    for key, value in table.items():
        if key not in KEYS or not isinstance(value, KEYS[key]):
            kinds = ", ".join(f"{name} ({kind.__name__})" for name, kind in KEYS.items())
            raise pytest.UsageError(f"{path}: [tool.jinjarun] {key} = {value!r}: it may hold {kinds}")
    return table


def _found(root: Path, patterns: list[str]) -> list[str]:
    found: list[str] = []
    for pattern in patterns:
        paths = sorted(root.glob(pattern)) if "*" in pattern else [root / pattern]
        if not paths:
            raise pytest.UsageError(f"[tool.jinjarun] templates: nothing is called {pattern}")
        found += [str(path) for path in paths]
    return found


@dataclass(frozen=True)
class ChatTemplate:
    """What the fixture `chat_template` gives: a template, and conversations that it takes. `label` is its name as it
    is printed."""

    name: str
    label: str
    text: str
    bos_token: str
    eos_token: str

    @cached_property
    def subject(self) -> Subject:
        from probes.laws import Subject  # noqa: PLC0415  # only where it is used

        return Subject(self.text, bos_token=self.bos_token, eos_token=self.eos_token)

    def conversations(self) -> SearchStrategy[Chat]:
        """A Hypothesis strategy of requests, steered by what this template takes."""
        from probes.chats.strategies import conversations  # noqa: PLC0415

        return conversations(self.subject.supports)

    def prompt(self, chat: Chat) -> str:
        """The bare prompt of a request; raises what the template raises."""
        answer = self.subject.prompt(chat)
        if isinstance(answer, Exception):
            raise answer
        return answer.text


def _templates(config: pytest.Config) -> list[ChatTemplate]:
    """The templates of this run, read once."""
    if TEMPLATES not in config.stash:
        config.stash[TEMPLATES] = list(_read(wanted(config).targets))
    return config.stash[TEMPLATES]


TEMPLATES = pytest.StashKey[list[ChatTemplate]]()
REPORTS = pytest.StashKey[dict[str, "FuzzReport"]]()


def _read(targets: tuple[str, ...]) -> Iterator[ChatTemplate]:
    if not targets:
        return
    from jinjarun.errors import JinjarunError  # noqa: PLC0415
    from jinjarun.sources import open_source  # noqa: PLC0415
    from probes.chats.corpus import corpus_folder  # noqa: PLC0415
    from probes.linter.places import find_targets  # noqa: PLC0415
    from probes.reporters.escaping import line  # noqa: PLC0415

    try:
        for name in (name for target in targets for name in find_targets(target)):
            source = open_source(name, corpus=corpus_folder(), vocabulary=False)
            bos, eos = source.tokens.bos, source.tokens.eos
            label = line(name).replace("::", r"\x3a:")  # in the id of an item it stands between names
            yield ChatTemplate(name, label, source.template(), (bos and bos.text) or "", (eos and eos.text) or "")
    except JinjarunError as error:
        raise pytest.UsageError(line(f"--chat-template: {error}")) from None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(session: pytest.Session, config: pytest.Config, items: list[pytest.Item]) -> None:
    """The items of templates come after all others, whatever files were named."""
    asked = wanted(config)
    if not asked.targets:
        return
    from probes.laws import LAWS  # noqa: PLC0415

    unknown = [law for law in asked.laws if law not in LAWS]
    if unknown:
        raise pytest.UsageError(f"no law is called {', '.join(unknown)}; there are {', '.join(LAWS)}")
    for template in _templates(config):
        parent = TemplateCollector.from_parent(session, name=template.label, nodeid=template.label, template=template)
        items += [LawItem.from_parent(parent, name=law) for law in asked.laws or LAWS]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "chat_template" in metafunc.fixturenames:
        templates = _templates(metafunc.config)
        metafunc.parametrize("chat_template", templates, ids=[template.label for template in templates])


class TemplateCollector(pytest.Collector):
    def __init__(self, *, template: ChatTemplate, **rest: Any) -> None:
        super().__init__(**rest)
        self.template = template

    def collect(self) -> list[pytest.Item]:
        return []


class LawItem(pytest.Item):
    """One law on one template. The first of a template's items does the work for all of them."""

    def __init__(self, **rest: Any) -> None:
        super().__init__(**rest)
        self.add_marker(pytest.mark.xdist_group(self.template.name))

    @property
    def template(self) -> ChatTemplate:
        assert isinstance(self.parent, TemplateCollector)
        return self.parent.template

    def report(self) -> FuzzReport:
        from probes.fuzzer.fuzz import fuzz  # noqa: PLC0415
        from probes.laws import DATABASE  # noqa: PLC0415

        reports = self.config.stash.setdefault(REPORTS, {})
        if self.template.name not in reports:
            asked = wanted(self.config)
            reports[self.template.name] = fuzz(
                self.template.text,
                name=self.template.name,
                laws=asked.laws or None,
                max_examples=asked.examples,
                seed=asked.seed,
                bos_token=self.template.bos_token,
                eos_token=self.template.eos_token,
                database=self.config.rootpath / DATABASE,
            )
        return reports[self.template.name]

    def runtest(self) -> None:
        report = self.report()
        if report.status == "not_evaluated":
            raise LawBroken(report, [])
        outcome = next(law for law in report.laws if law.law == self.name)
        if outcome.skipped is not None:
            pytest.skip(outcome.skipped)
        told = [*report.broken, *(report.known if wanted(self.config).strict else [])]
        broken = [example for example in told if example.law == self.name and (example.fails or not example.known)]
        if broken:
            raise LawBroken(report, broken)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if not isinstance(excinfo.value, LawBroken):
            return super().repr_failure(excinfo, style)
        from probes.reporters.fuzzing import examples_text  # noqa: PLC0415

        return examples_text(excinfo.value.report, excinfo.value.examples)

    def reportinfo(self) -> tuple[str, None, str]:
        return self.template.label, None, f"{self.template.label}: {self.name}"


class LawBroken(Exception):
    def __init__(self, report: FuzzReport, examples: list[Counterexample]) -> None:
        super().__init__(report.why or "a law is broken")
        self.report = report
        self.examples = examples
