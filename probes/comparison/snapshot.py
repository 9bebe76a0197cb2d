"""`snapshot`: the prompts that a template writes today, and its capabilities, kept in a file beside it.

The file is JSON that reads well in a diff: an entry a conversation of the set, in it the paths that write the same, and
the prompt line by line. The same template gives the same bytes on every machine: the clock is the frozen one, names are
sorted, and nothing of the template's own source is kept, so that a change of its layout alone changes nothing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from pydantic import Field, ValidationError

from jinjarun.dialects import dialect_named
from jinjarun.errors import JinjarunError, SourceError, quote
from jinjarun.limits import Limits
from jinjarun.sources.files import decode, failure, os_errors, read_bytes
from probes.chapters.observed.questions import observe
from probes.chats.named import CHATS, CONVERSATION_SET
from probes.prober import CONTEXT, first_difference
from probes.rendering.renders import LLAMA_RAW, PATHS, RAW, EvidenceBook, Outcome, Renders
from probes.report import FROZEN_CLOCK, Model, Observation, Path

if TYPE_CHECKING:
    from jinjarun.sources import Source
    from probes.chats.messages import Chat

ENDING = ".snapshot.json"
State = Literal["written", "unchanged", "changed", "missing"]
Mode = Literal["write", "update", "check"]


class Prompt(Model):
    """What some paths give for one conversation: the prompt's lines, each with its line break, or an error."""

    paths: list[Path]
    text: list[str] | None = None
    error: str | None = None

    @property
    def shown(self) -> str:
        return "".join(self.text or ()) if self.error is None else f"error: {self.error}"


Prompts = Mapping[str, list[Prompt]]


class Snapshot(Model):
    """The content of a file. `made_with` are the versions and tokens that the prompts depend on beside the template;
    `observed` are the answers of the report, with the paths that answer otherwise."""

    format: Literal[1] = 1
    made_with: dict[str, str]
    caps: dict[str, bool] | None
    observed: dict[str, str]
    prompts: dict[str, list[Prompt]]

    def to_json(self) -> str:
        return self.json_text(indent=1, exclude_none=True) + "\n"


class Change(Model):
    """One thing that differs between two snapshots.

    `kind`: "made_with", "caps", "observed" or "prompt", and `name` which of them. Of a prompt, `paths` are those on
    which it differs, and `at` the code point of the first difference on the first of these, null where one side is no
    prompt; `old` and `new` quote both sides from a little before it. Null stands for nothing at all.
    """

    kind: Literal["made_with", "caps", "observed", "prompt"]
    name: str
    old: str | None
    new: str | None
    paths: list[Path] = Field(default_factory=list)
    at: int | None = None


def snapshot(template: str, *, bos_token: str = "", eos_token: str = "", limits: Limits | None = None) -> Snapshot:
    """What `template` writes for every conversation of the set on all paths. Raises the error of a template that parses
    in neither dialect: there is nothing to keep of it."""
    return _taken(Renders(template, bos_token=bos_token, eos_token=eos_token, limits=limits))


def _taken(renders: Renders) -> Snapshot:
    refusal = renders.loads(RAW)
    if refusal is not None and renders.loads(LLAMA_RAW) is not None:
        raise refusal
    caps = renders.caps
    observed = observe(renders, EvidenceBook(None))
    return Snapshot(
        made_with={
            "bos_token": renders.bos_token,
            "clock": FROZEN_CLOCK,
            "conversation_set": CONVERSATION_SET,
            "eos_token": renders.eos_token,
            **{name: dialect_named(name).version for name in ("llama.cpp", "transformers")},
        },
        caps=None if isinstance(caps, JinjarunError) else dict(sorted(caps.to_dict().items())),
        observed={name: answer_text(seen) for name, seen in sorted(observed.items())},
        prompts=prompts_of(renders, conversation_set()),
    )


def conversation_set() -> dict[str, Chat]:
    """Every conversation of the set, by its name."""
    return {name: CHATS[name]() for name in sorted(CHATS)}


def prompts_of(renders: Renders, chats: Mapping[str, Chat]) -> dict[str, list[Prompt]]:
    """What each conversation becomes, by its name."""
    return {name: _prompts(renders, chat) for name, chat in chats.items()}


def _prompts(renders: Renders, chat: Chat) -> list[Prompt]:
    groups: dict[tuple[str | None, str | None], list[Path]] = {}
    for path in renders.paths:
        outcome = renders.render(path, chat)
        groups.setdefault((outcome.text, _error(outcome)), []).append(path)  # type: ignore[arg-type]
    return [
        Prompt(paths=paths, text=None if text is None else _lines(text), error=error)
        for (text, error), paths in groups.items()
    ]


def _error(outcome: Outcome) -> str | None:
    """Class and message, without the line, which moves whenever the template is edited above it."""
    return None if outcome.error is None else f"{type(outcome.error).__name__}: {quote(outcome.error.message)}"


def _lines(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


# What changed


def changes(old: Snapshot, new: Snapshot) -> list[Change]:
    """Every difference, in the order of the file; of each conversation the first place."""
    found: list[Change] = []
    for kind, before, after in (
        ("made_with", old.made_with, new.made_with),
        ("caps", _words(old.caps), _words(new.caps)),
        ("observed", old.observed, new.observed),
    ):
        found += [
            Change(kind=kind, name=name, old=before.get(name), new=after.get(name))  # type: ignore[arg-type]
            for name in sorted(before.keys() | after.keys())
            if before.get(name) != after.get(name)
        ]
    prompts: dict[str, Change] = {}
    for change in prompt_changes(old.prompts, new.prompts):
        first = prompts.setdefault(change.name, change)
        if first is not change:
            prompts[change.name] = first.model_copy(update={"paths": [*first.paths, *change.paths]})
    return [*found, *prompts.values()]


def prompt_changes(old: Prompts, new: Prompts) -> Iterator[Change]:
    """The conversations whose prompt differs on some path; one change for all the paths that give the same two."""
    for name in sorted(old.keys() | new.keys()):
        before, after = _by_path(old.get(name, [])), _by_path(new.get(name, []))
        pairs: dict[tuple[str | None, str | None], list[Path]] = {}
        for path in PATHS:
            if before.get(path) != after.get(path):
                pairs.setdefault((_shown(before.get(path)), _shown(after.get(path))), []).append(path)  # type: ignore[arg-type]
        for paths in pairs.values():
            yield _change(name, paths, before.get(paths[0]), after.get(paths[0]))


def _change(name: str, paths: list[Path], old: Prompt | None, new: Prompt | None) -> Change:
    texts = old is not None and new is not None and old.error is new.error is None
    at = first_difference(_shown(old), _shown(new)) if texts else None
    return Change(kind="prompt", name=name, paths=paths, at=at, old=_side(old, at), new=_side(new, at))


def _shown(prompt: Prompt | None) -> str | None:
    return None if prompt is None else prompt.shown


def _by_path(prompts: list[Prompt]) -> dict[str, Prompt]:
    return {path: prompt.model_copy(update={"paths": []}) for prompt in prompts for path in prompt.paths}


def _side(prompt: Prompt | None, at: int | None) -> str | None:
    if prompt is None:
        return None
    start = max(0, (at or 0) - CONTEXT)
    return prompt.shown[start : (at or 0) + 2 * CONTEXT] if prompt.error is None else prompt.shown


def _words(flags: Mapping[str, bool] | None) -> dict[str, str]:
    return {name: "true" if value else "false" for name, value in (flags or {}).items()}


def answer_text(seen: Observation) -> str:
    """The answer, and in the same line the paths that answer otherwise."""
    return ", ".join([seen.answer, *(f"{path}: {answer}" for path, answer in sorted(seen.by_path.items()))])


# Files


@dataclass(frozen=True, slots=True)
class Kept:
    """What came of one template: its snapshot's file, and what differs from it."""

    template: str
    file: str
    state: State
    changes: list[Change]

    def to_dict(self) -> dict[str, object]:
        """Plain JSON."""
        return {
            "template": self.template,
            "file": self.file,
            "state": self.state,
            "changes": [change.model_dump(mode="json") for change in self.changes],
        }


def snapshot_file(source: Source, variant: str, folder: str | None = None) -> str:
    """Where the snapshot of one of a source's templates is kept: beside it, in a model's own folder, or in `folder`
    under the name of the source. SourceError for what has no place of its own and is given no folder."""
    suffix = ENDING if variant in {"default", source.default} else f".{re.sub(r'[^A-Za-z0-9_-]', '-', variant)}{ENDING}"
    if folder is not None:
        name = "--".join(part for part in re.split(r"[/\\:]+", source.name) if part not in {"", ".", ".."})
        return os.path.join(folder, f"{name}{suffix}")
    if source.kind == "model_folder":
        return os.path.join(source.path, f"chat_template{suffix}")
    if source.kind in {"stdin", "family", "server", "hf_cache"}:
        raise failure(source.path, "has no place for a snapshot", hint="name a folder with --dir")
    return f"{source.path}{suffix}"


def read_snapshot(file: str) -> Snapshot:
    """SourceError where there is no file, or it is no snapshot of this version."""
    text = decode(file, read_bytes(file, Limits().input_bytes))[0]
    try:
        return Snapshot.model_validate_json(text)
    except ValidationError as error:
        place = ".".join(str(key) for key in error.errors()[0]["loc"]) or None
        hint = "write it anew with --update"
        raise failure(file, "is no snapshot of this version", place=place, hint=hint) from None


def keep(
    template: str,
    name: str,
    file: str,
    mode: Mode = "write",
    *,
    bos_token: str = "",
    eos_token: str = "",
    limits: Limits | None = None,
) -> Kept:
    """Compares a template with its snapshot in `file`.

    Mode "check" writes nothing; "write" writes a snapshot where there is none, and "update" also where it differs.
    Raises what `snapshot` and `read_snapshot` raise; "update" replaces a file that is no snapshot.
    """
    taken = snapshot(template, bos_token=bos_token, eos_token=eos_token, limits=limits)
    if not os.path.lexists(file):
        if mode == "check":
            return Kept(name, file, "missing", [])
        _write(file, taken)
        return Kept(name, file, "written", [])
    try:
        found = changes(read_snapshot(file), taken)
    except SourceError:
        if mode != "update":
            raise
        _write(file, taken)
        return Kept(name, file, "written", [])
    if found and mode == "update":
        _write(file, taken)
        return Kept(name, file, "written", found)
    return Kept(name, file, "changed" if found else "unchanged", found)


def _write(file: str, taken: Snapshot) -> None:
    with os_errors(file):
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        with open(file, "wb") as out:
            out.write(taken.to_json().encode("utf-8", "surrogatepass"))
