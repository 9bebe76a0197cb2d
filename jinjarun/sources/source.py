"""What was found: the templates that count for one reader, every text that was there, and the tokens."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from jinjarun.errors import SourceError, quote
from jinjarun.sources.files import failure
from jinjarun.sources.not_a_template import not_a_template
from jinjarun.sources.tokens import TokenData

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind = Literal[
    "jinja_file",
    "tokenizer_config",
    "chat_template_json",
    "processor_config",
    "model_folder",
    "hf_cache",
    "gguf",
    "stdin",
    "family",
    "server",
]

Form = Literal["string", "list", "object", "null", "absent"]
"""How a place holds its templates: one text, a list of `{name, template}`, an object by name, null, or not at all."""

DEFAULT = "default"
TOOL_USE = "tool_use"


@dataclass(frozen=True, slots=True)
class Candidate:
    """One text in one place that some reader takes for a template, whether or not it counts for this one.

    `kind`: the sort of file. `key`: the place inside it, such as `chat_template` or `tokenizer.chat_template.tool_use`;
    null where the whole file is the template.
    """

    name: str
    text: str
    kind: Kind
    path: str
    key: str | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """Something that is read, and that another reader may read differently: a BOM, a key that stands twice."""

    path: str
    place: str | None
    message: str


@dataclass(frozen=True)
class Source:
    """A target as one engine reads it.

    `kind`, `path`, `revision`: what the target is, where, and the commit of a cached repository.
    `reader`: whose order of precedence chose, such as "transformers tokenizer".
    `form`: how the chosen place holds its templates.
    `chosen`: by name, the candidates that count for this reader; `templates` are those that are templates.
    `candidates`: every text found, in the order of the files.
    `readings`: for a folder, what each reader would choose, by its name: how a folder contradicts itself.
    `refusal`: why this reader fails on this folder, null where it does not.
    """

    kind: Kind
    path: str
    name: str
    reader: str
    form: Form
    chosen: Mapping[str, Candidate] = field(default_factory=dict)
    candidates: tuple[Candidate, ...] = ()
    tokens: TokenData = field(default_factory=TokenData)
    revision: str | None = None
    readings: Mapping[str, Mapping[str, Candidate]] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    refusal: str | None = None

    @property
    def templates(self) -> dict[str, str]:
        """The template texts by name: "default", "tool_use", or another. Empty where there is none."""
        return {name: found.text for name, found in self.chosen.items() if not_a_template(found.text) is None}

    @property
    def default(self) -> str | None:
        """The name of the template that a request without tools gets, or None.

        transformers raises where there are several and none is called "default" (`get_chat_template`); llama.cpp takes
        "tool_use" where the default is missing, empty or `chatml` (`common_chat_templates_init`).
        """
        text = self.chosen[DEFAULT].text if DEFAULT in self.chosen else ""
        if self.reader.startswith("llama.cpp") and text in {"", "chatml"} and TOOL_USE in self.chosen:
            return TOOL_USE
        return DEFAULT if DEFAULT in self.chosen else None

    def template(self, name: str | None = None) -> str:
        """The text of a template; without a name, of the default. `SourceError` says what is there instead."""
        return self._pick(name).text

    def report(self, name: str | None = None) -> dict[str, str | None]:
        """Where a template comes from, as the report's `template.source`: `kind`, `path`, `key`, `revision`."""
        wanted = name or self.default
        found = None if wanted is None else self.chosen.get(wanted)
        if found is None:
            return {"kind": self.kind, "path": self.path, "key": None, "revision": self.revision}
        return {"kind": self.kind, "path": found.path, "key": found.key, "revision": self.revision}

    def _pick(self, name: str | None) -> Candidate:
        wanted = name or self.default
        if wanted is None or wanted not in self.chosen:
            raise self._missing(name)
        found = self.chosen[wanted]
        if trouble := not_a_template(found.text):
            what, hint = trouble
            raise failure(found.path, what, place=found.key, hint=hint)
        return found

    def _missing(self, name: str | None) -> SourceError:
        if self.refusal is not None:
            return failure(self.path, f"{self.reader} {self.refusal}")
        names = ", ".join(quote(other) for other in self.chosen)
        if name is not None and names:
            return failure(self.path, f"has no template {quote(name)!r}", hint=f"it has {names}")
        if names:
            reason = 'has templates and none is called "default"'
            return failure(self.path, reason, hint=f"choose one of {names}")
        others = sorted({f"{found.path}{f' ({found.key})' if found.key else ''}" for found in self.candidates})
        if others:
            hint = f"{self.reader} does not read {', '.join(map(quote, others))}"
        else:
            hint = "engines substitute one of their own, often ChatML"
        return failure(self.path, "holds no chat template", hint=hint)
