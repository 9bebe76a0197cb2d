"""A model that was trained on chats comes without a template.

What it does: where a folder, a configuration or a GGUF file holds no template, looks for markers of turns among the
tokens, and for a name that speaks of instructions or chats.

Why it is bad: llama.cpp then takes ChatML, whatever the model was trained on, and says so in one line of its log.
transformers and vLLM refuse to answer chats, so that each user takes a template from somewhere.

Example: a GGUF file of an Instruct model, converted from a folder in which `chat_template.jinja` was missing.

Use instead: the template that the model was trained on, in `chat_template.jinja`, and in the GGUF file.

References: `common_chat_templates_init` of llama.cpp, `get_chat_template` of transformers 5.24. Base models share the
vocabulary of their chat models: for them the finding is no fault, and `--ignore PK303` takes it away.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from probes.rendering.renders import APPLY, LLAMA_SERVER
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from jinjarun.sources import TokenData
    from probes.rules.view import Facts

MARKERS = (
    "<|im_start|>",
    "<|start_header_id|>",
    "<|header_start|>",
    "<start_of_turn>",
    "<|START_OF_TURN_TOKEN|>",
    "<|start_of_role|>",
    "<|assistant|>",
    "<｜Assistant｜>",
    "<|im_assistant|>",
    "[INST]",
)
"""Each opens a turn, or only the assistant's, in the templates of one or several families."""
CHAT_NAME = re.compile(r"(?:^|[-_. /])(?:instruct|chat|it)(?:$|[-_. /])", re.IGNORECASE)


def check(facts: Facts) -> list[Hit]:
    files = facts.files
    if files is None or files.candidates:
        return []
    marker = _marker(files.tokens)
    if marker is not None:
        why = f"the vocabulary holds {quote(marker)!r}"
    elif CHAT_NAME.search(files.name):
        why = f"the name is {quote(files.name)!r}"
    else:
        return []
    said = "llama.cpp takes ChatML in its place, transformers and vLLM refuse chats"
    return [Hit(message=f"no template, though {why}: {said}", engines=[LLAMA_SERVER, APPLY])]


def _marker(tokens: TokenData) -> str | None:
    return next((marker for marker in MARKERS if tokens.find(marker) is not None), None)


RULE = Rule(
    code="PK303",
    name="chat-model-without-template",
    severity="warning",
    summary="Chat markers in the vocabulary or an instruct name, and no template; what engines do then.",
    suggestion="put the template that the model was trained on into chat_template.jinja",
    check=check,
    triggers="",
    repaired="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    healthy="{% for m in messages %}[INST]{{ m.content }}[/INST]{% endfor %}",
    documentation=__doc__,
)
