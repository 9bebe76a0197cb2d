"""The last message of the assistant: continued, and masked for training."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.errors import JinjarunError
from probes.chapters.observed.question import Verdict, look, question, sought
from probes.chats import canaries as c
from probes.rendering.input_form import cached_chat
from probes.rendering.outcomes import complaint
from probes.rendering.renders import APPLY, SERVERS, SGLANG, VLLM, dialect_of

if TYPE_CHECKING:
    from probes.rendering.input_form import PathObserver
    from probes.report import Answer

PREFIX_KEYS = (".prefix", "'prefix'", '"prefix"')
"""How a template names the key by which some clients ask to continue a message."""
GENERATION_TAG = re.compile(r"\{%[-+]?\s*generation\b")


@question(reworked=(APPLY, *SERVERS))
def assistant_prefill(on: PathObserver) -> Verdict:
    """Yes where the text ends with the message to be continued."""
    form = on.form
    tried = {"": cached_chat(c.prefill, form)}
    if on.path in (APPLY, VLLM, SGLANG):
        tried["with continue_final_message "] = c.continued(form)
    if "continue_final_message" in on.names:
        tried["with the variable continue_final_message "] = c.continued(form, by_variable=True)
    if any(key in on.renders.source for key in PREFIX_KEYS):
        tried["with the key prefix "] = c.prefill(form, prefix=True)
    verdict = sought(on, tried.values(), (c.ANSWER,), "")
    for how, chat in tried.items():
        text = on.ask(chat).text
        if text is not None and text.rstrip().endswith(c.ANSWER):
            reason = f"{how}the turn of a last assistant message stays open"
            return Verdict("yes", reason, (look(on, chat, "written", c.ANSWER),))
    if verdict.answer == "yes":
        return Verdict("no", "the turn of a last assistant message is closed", verdict.shown)
    return verdict


@question(in_source=("generation",))
def generation_mask(on: PathObserver) -> Verdict:
    """Yes where a `generation` block wrote an assistant's text."""
    chat = c.prefill(on.form)
    if GENERATION_TAG.search(on.renders.source) is None:
        return Verdict("no", "the template has no generation block", (look(on, chat, "rendered", c.ANSWER),))
    if dialect_of(on.path) != "transformers":
        return Verdict("no", "llama.cpp reads over generation blocks", (look(on, chat, "rendered", c.ANSWER),))
    template = on.renders.template("transformers")
    assert not isinstance(template, JinjarunError)
    context = {
        "messages": chat["messages"],
        "tools": None,
        "documents": None,
        "add_generation_prompt": False,
        "bos_token": on.renders.bos_token,
        "eos_token": on.renders.eos_token,
        **chat.get("variables", {}),
    }
    try:
        rendered = template.render_context(context, now=on.renders.now, generations=True)
    except JinjarunError:
        outcome = on.ask(chat)
        answer: Answer = "unknown" if outcome.limited else "no"
        return Verdict(answer, complaint(outcome), (look(on, chat, "raised"),))
    at = rendered.text.find(c.ANSWER)
    end = at + len(c.ANSWER)
    if at >= 0 and any(start <= at and end <= stop for start, stop in rendered.generations or ()):
        return Verdict("yes", "a generation block writes the answer", (look(on, chat, "written", c.ANSWER),))
    return Verdict("no", "no generation block writes the answer", (look(on, chat, "lost", c.ANSWER),))
