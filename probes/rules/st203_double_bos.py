"""The template writes BOS, and the tokenizer adds another one.

What it does: counts the BOS tokens at the start of a rendered prompt and adds the one that the tokenizer puts before a
text: by tokenizer.json's post-processor in transformers, by `add_bos_token` in llama.cpp. Each way from prompt to
tokens is judged by itself, because the engines' own chat endpoints repair it: `apply_chat_template(tokenize=True)` adds
nothing, llama-server takes one BOS away before its tokenizer adds one.

Why it is bad: the model never saw two BOS in training and answers worse. The usual place is a training script that
renders to text and calls the tokenizer on it, or a client that sends a rendered prompt to /completion.

Example: `{{ bos_token }}` in the template of a tokenizer whose post-processor is `<s> $A`.

Use instead: `add_special_tokens=False` where a rendered prompt is tokenized; or one of the two, not both, in the model.

References: `apply_chat_template` of transformers; `common_chat_templates_apply` of llama.cpp.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters.tokens import APPLIED, SERVER, SERVER_TEXT, TEXT_THEN_TOKENIZE, double_bos
from probes.chats.named import conversation
from probes.rendering.renders import LLAMA_RAW, RAW
from probes.rules.base import Rule
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.rules.view import Facts

PATHS = {
    TEXT_THEN_TOKENIZE: "transformers:text-then-tokenize",
    APPLIED: "transformers:apply_chat_template",
    SERVER: "llama.cpp:llama-server",
    SERVER_TEXT: "llama.cpp:completion",
}


def check(facts: Facts) -> list[Hit]:
    answers = double_bos(facts.renders, facts.tokens)
    doubled = [way for way, answer in answers.items() if answer]
    if not doubled:
        return []
    single = [PATHS[way] for way, answer in answers.items() if answer is False]
    path = RAW if facts.renders.loads(RAW) is None else LLAMA_RAW
    chat = conversation("user")
    text = facts.renders.render(path, chat).text or ""
    ways = ", ".join(PATHS[way] for way in doubled)
    where = f"; once on {', '.join(single)}" if single else ""
    return [
        Hit(
            message=f"the prompt begins with BOS twice on {ways}{where}",
            engines=[PATHS[way] for way in doubled],
            evidence=[facts.book.cite(chat, path, "doubled", excerpt=text[:60])],
            cause="double bos",
        )
    ]


RULE = Rule(
    code="ST203",
    name="double-bos",
    severity="warning",
    summary="The template writes BOS and the tokenizer adds it too.",
    suggestion="tokenize a rendered prompt with add_special_tokens=False, or leave BOS to one of the two",
    check=check,
    triggers="{{ bos_token }}{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}",
    repaired="{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}",
    healthy="{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}",
    documentation=__doc__,
)
