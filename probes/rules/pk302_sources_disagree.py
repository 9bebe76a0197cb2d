"""Places in one folder or file hold different templates.

What it does: compares the default templates that each reader takes from a folder: transformers' tokenizer, its
processor, and the converter of llama.cpp.

Why it is bad: the model behaves otherwise on each engine, and a repair in one place changes nothing in another.

Example: a chat_template.jinja that was updated beside a tokenizer_config.json that still holds the old text.

Use instead: one place, chat_template.jinja, and no key `chat_template` in the configurations.

References: transformers 5.24, `_from_pretrained` and `get_processor_dict`; gguf-py 0.19, `SpecialVocab`.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from jinjarun.sources.precedence import CONVERTER, FILES, PROCESSOR, TOKENIZER
from jinjarun.sources.source import DEFAULT
from probes.rendering.renders import APPLY, LLAMA_SERVER
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from jinjarun.sources import Source
    from probes.rules.view import Facts


def check(facts: Facts) -> list[Hit]:
    if facts.files is None:
        return []
    read: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    for reader, chosen in facts.files.readings.items():
        found = chosen.get(DEFAULT)
        if found is not None:
            read.setdefault(found.text, []).append(reader)
            place = found.path.rpartition("/")[2]
            places.setdefault(found.text, f"{place} ({found.key})" if found.key else place)
    without = [reader for reader in _readers(facts.files) if DEFAULT not in facts.files.readings.get(reader, {})]
    if not read or (len(read) < 2 and not without):
        return []
    told = [f"{' and '.join(readers)}: {places[text]}" for text, readers in read.items()]
    said = "; ".join([*([f"{' and '.join(without)}: none"] if without else []), *told])
    return [
        Hit(message=f"the readers take different templates: {said}", engines=[APPLY, LLAMA_SERVER], cause="sources")
    ]


def _readers(files: Source) -> list[str]:
    """The readers that are used with this folder: a processor only where the model has one."""
    if not os.path.isdir(files.path):
        return []
    there = set(os.listdir(files.path))
    readers = [TOKENIZER.name]
    readers += [PROCESSOR.name] if there & {"processor_config.json", "preprocessor_config.json"} else []
    return [*readers, CONVERTER.name] if FILES["tokenizer_config"] in there else readers


RULE = Rule(
    code="PK302",
    name="sources-disagree",
    severity="warning",
    summary="Places in one folder hold different templates; says which engine reads which.",
    suggestion="keep one template, in chat_template.jinja",
    check=check,
    triggers="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}",
    repaired="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    healthy="{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}",
    documentation=__doc__,
    beside="folder",
)
