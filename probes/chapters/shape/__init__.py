"""What a template writes: found from differences between renders of canary texts and from where their characters stem.

The texts around turns, calls and reasoning are read as follows.

- A turn is `open`, content, `close`, as in the middle of a conversation; the text of a system prompt that stands in a
  user's turn has what stands around it there, and `rendered_as` says so.
- A call is `open`, call, `close`. Where each of two calls has both around it, `between` stands between a `close` and
  the next `open`; where they share them (a list, a section), `between` is all that stands between one call and the
  next. What a call itself is follows from its style: the JSON or Python of it, or the text from its name or id to the
  end of its last argument. Space outside `open` and `close` belongs to neither.
- Reasoning stands between `open` and `close`, both up to the header of the turn and to the answer.

Special tokens whose text is not known stand as `{{ bos_token }}` and `{{ eos_token }}`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.chapters.shape.calls import calls
from probes.chapters.shape.channels import channels, recipients
from probes.chapters.shape.clock import clock
from probes.chapters.shape.reasoning import generation_prompt, reasoning
from probes.chapters.shape.requests import Requests
from probes.chapters.shape.schemas import schemas
from probes.chapters.shape.turns import bos, frame, system, trims
from probes.rendering.input_form import judged
from probes.report import EndOfTurn, Shape, Turn

if TYPE_CHECKING:
    from probes.rendering.renders import EvidenceBook, Renders


def shape(renders: Renders, book: EvidenceBook) -> Shape:
    """The shape of what the template writes, on the raw path where it renders more.

    Its statements are texts of the template, so it cites no evidence: `book` is there as for every chapter.
    """
    ask = Requests(judged(renders))
    found = frame(ask)
    thinking = reasoning(ask, found)
    system_shape, system_turn = system(ask, found)
    called = calls(ask, found, thinking)
    tool_schemas, beside = schemas(ask, found, system_turn.open if system_turn is not None else "")
    turns: dict[str, Turn] = {}
    if system_turn is not None:
        turns["system"] = system_turn
    if found.known or found.user_open or found.user_close:
        turns["user"] = Turn(open=found.user_open, close=found.user_close, trims_content=trims(ask, "user"))
    if found.known:
        opening = found.assistant_open
        if thinking is not None and opening.startswith(found.header):
            rest = thinking.strip_empty(opening[len(found.header) :])
            opening = opening if rest else found.header
        turns["assistant"] = Turn(open=opening, close=found.assistant_close, trims_content=trims(ask, "assistant"))
    if called is not None and called.tool_turn is not None:
        turns["tool"] = called.tool_turn
    texts = [called.text if called is not None else None]
    return Shape(
        bos=bos(ask),
        turns=turns,
        generation_prompt=generation_prompt(ask, found, thinking),
        end_of_turn=EndOfTurn(
            text=found.end,
            after_plain_answer=found.ended_after_answer,
            after_tool_calls=called.ended if called is not None else None,
        ),
        system=system_shape.model_copy(update={"with_tools": beside}) if system_shape is not None else None,
        tools=tool_schemas,
        tool_call=called.shape if called is not None else None,
        reasoning=thinking.shape if thinking is not None else None,
        channels=channels(
            [thinking.open if thinking is not None else None, *texts, found.prompt, found.assistant_open]
        ),
        recipients=recipients(texts),
        clock=clock(ask),
    )
