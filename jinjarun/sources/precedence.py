"""Which of several places counts, for each reader. The readers disagree, and each is a row of `READS_AS`.

A folder can hold templates in five places. Read for this table:

- transformers 5.24, tokenization_utils_base.py `_from_pretrained`: if chat_template.jinja or any file of
  additional_chat_templates/ is there, they replace whatever tokenizer_config.json says. An additional file called
  default.jinja replaces chat_template.jinja. chat_template.json and processor_config.json are not looked at.
- transformers 5.24, processing_utils.py `get_processor_dict`: `chat_template` in processor_config.json first; then
  chat_template.json, which must not stand beside additional files; then the .jinja files, of which chat_template.jinja
  is the default whatever the others are called. tokenizer_config.json is not looked at.
- llama.cpp's converter, gguf-py 0.19 vocab.py `SpecialVocab`: nothing without a tokenizer_config.json; then
  `chat_template` in it, even if it is null (so a null there hides every file) or of a type that it ignores (an object);
  then chat_template.jinja, with the additional files only if it is there; then chat_template.json. Names keep letters
  and digits, anything else becomes "_" (gguf_writer.py `add_chat_template`). A few architectures override the choice in
  their own classes; that is not modelled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from jinjarun.sources.source import Candidate, Form

if TYPE_CHECKING:
    from collections.abc import Mapping

JsonPlace = Literal["tokenizer_config", "chat_template_json", "processor_config"]
Place = JsonPlace | Literal["jinja", "additional"]

FILES: dict[Place, str] = {
    "jinja": "chat_template.jinja",
    "additional": "additional_chat_templates",
    "tokenizer_config": "tokenizer_config.json",
    "chat_template_json": "chat_template.json",
    "processor_config": "processor_config.json",
}
"""The file, or for additional templates the folder of *.jinja files, of each place."""
JSON_PLACES: tuple[JsonPlace, ...] = ("tokenizer_config", "chat_template_json", "processor_config")


@dataclass(frozen=True, slots=True)
class Slot:
    """What one place of a folder holds; a file that is not there has no slot."""

    form: Form
    found: tuple[Candidate, ...] = ()


@dataclass(frozen=True, slots=True)
class Step:
    """Places that a reader takes together, a later one replacing templates of the same name.

    `needs`: only if this place exists. `null_counts`: a null or a form that is not in `forms` ends the search with
    nothing.
    """

    places: tuple[Place, ...]
    needs: Place | None = None
    null_counts: bool = False
    forms: frozenset[Form] = frozenset({"string", "list", "object"})


@dataclass(frozen=True, slots=True)
class Reader:
    """`needs`: finds nothing without this place. `plain_names`: keeps only letters and digits of a template's name.
    `requires_key`: fails where this file is there without the key, whatever else there is. `conflict`: fails where both
    are there."""

    name: str
    steps: tuple[Step, ...]
    needs: Place | None = None
    plain_names: bool = False
    requires_key: Place | None = None
    conflict: tuple[Place, Place] | None = None


@dataclass(frozen=True, slots=True)
class Reading:
    """What a reader ends up with; `refusal` says why it fails instead."""

    reader: str
    form: Form = "absent"
    chosen: Mapping[str, Candidate] = field(default_factory=dict)
    refusal: str | None = None


TOKENIZER = Reader("transformers tokenizer", (Step(("jinja", "additional")), Step(("tokenizer_config",))))

PROCESSOR = Reader(
    "transformers processor",
    (
        Step(("processor_config",)),
        Step(("chat_template_json",), null_counts=True),
        Step(("additional", "jinja")),
    ),
    requires_key="chat_template_json",
    conflict=("chat_template_json", "additional"),
)

_CONVERTED: frozenset[Form] = frozenset({"string", "list"})

CONVERTER = Reader(
    "llama.cpp converter",
    (
        Step(("tokenizer_config",), null_counts=True, forms=_CONVERTED),
        Step(("jinja", "additional"), needs="jinja"),
        Step(("chat_template_json",), null_counts=True, forms=_CONVERTED),
    ),
    needs="tokenizer_config",
    plain_names=True,
)

READS_AS: dict[str, tuple[Reader, ...]] = {
    "transformers": (TOKENIZER, PROCESSOR),
    "transformers:tokenizer": (TOKENIZER,),
    "transformers:processor": (PROCESSOR,),
    "llama.cpp": (CONVERTER,),
}
"""Readers by name, in the order in which they are asked: the first that ends up with a template answers."""

READERS = (TOKENIZER, PROCESSOR, CONVERTER)


def read(reader: Reader, slots: Mapping[Place, Slot]) -> Reading:
    """What this reader takes from the places of a folder."""
    if reader.needs is not None and reader.needs not in slots:
        return Reading(reader.name)
    strict = reader.requires_key
    if strict is not None and strict in slots and slots[strict].form == "absent":
        return Reading(reader.name, refusal=f"fails, because {FILES[strict]} has no chat_template")
    if reader.conflict is not None and all(place in slots for place in reader.conflict):
        both = " and ".join(FILES[place] for place in reader.conflict)
        return Reading(reader.name, refusal=f"fails, because {both} are both there")
    for step in reader.steps:
        if step.needs is not None and step.needs not in slots:
            continue
        there = [slots[place] for place in step.places if place in slots and slots[place].form != "absent"]
        usable = [slot for slot in there if slot.form in step.forms]
        if usable:
            found = [candidate for slot in usable for candidate in slot.found]
            chosen = {_name(reader, candidate.name): candidate for candidate in found}
            return Reading(reader.name, usable[0].form if len(usable) == 1 else "list", chosen)
        if there and step.null_counts:
            return Reading(reader.name, "null")
    return Reading(reader.name)


def choose(reads_as: str, slots: Mapping[Place, Slot]) -> Reading:
    """The first reading with a template among the readers of this name; without one, the first."""
    readings = [read(reader, slots) for reader in READS_AS[reads_as]]
    return next((reading for reading in readings if reading.chosen), readings[0])


def _name(reader: Reader, name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]", "_", name) if reader.plain_names else name
