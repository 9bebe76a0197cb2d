"""The variables that llama-server b11434 gives a template (common/chat.cpp: common_chat_template_direct_apply_impl)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from jinjarun.runtime.clock import MONTHS, resolve_now
from jinjarun.serving.caps import preserve_reasoning_variables, reasoning_effort_variables

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from jinjarun.serving.requests import ChatRequest
    from jinjarun.serving.reworks import Conversation


def date_variables(now: datetime | float | None) -> dict[str, str]:
    """Today's date in the two forms that templates ask for, by the server's wall clock."""
    moment = resolve_now(now)
    month = MONTHS[moment.month - 1][:3]
    return {
        "datetime": f"{month} {moment.day:02} {moment.year:04}",
        "date_string": f"{moment.day:02} {month} {moment.year:04}",
    }


def given_variables(
    request: ChatRequest,
    chat: Conversation,
    tokens: Mapping[str, str],
    now: datetime | float | None,
    *,
    thinks: bool,
    extra: Mapping[str, Any],
) -> dict[str, Any]:
    """All variables of a render. What the server is told to set wins over what it sets by itself.

    `thinks` is the default of enable_thinking; `extra` comes from the template's family and wins over both.
    """
    given: dict[str, Any] = {
        "messages": chat.messages,
        **tokens,
        "enable_thinking": thinks if request.enable_thinking is None else request.enable_thinking,
    }
    if request.tools:
        given["tools"] = request.tools
    given |= {**date_variables(now), **request.variables, **extra}
    if request.add_generation_prompt:
        given["add_generation_prompt"] = True
    return spread_variables(given) | given


def spread_variables(given: Mapping[str, Any]) -> dict[str, Any]:
    """preserve_reasoning and reasoning_effort under the other names by which templates know them."""
    spread: dict[str, Any] = {}
    preserve, effort = given.get("preserve_reasoning"), given.get("reasoning_effort")
    if isinstance(preserve, bool):
        spread |= preserve_reasoning_variables(preserve)
    if isinstance(effort, str):
        spread |= reasoning_effort_variables(effort)
    return spread


def note_variables(given: Mapping[str, Any], request: ChatRequest, chat: Conversation, names: frozenset[str]) -> None:
    """The rows for variables that the client did not set but the template reads; `names` are all that it reads."""
    unset = names - request.variables.keys()
    for name in ("datetime", "date_string"):
        if name in unset:
            chat.note("variables-added", name)
    if "enable_thinking" in unset:
        if request.enable_thinking is False:
            chat.note("thinking-off-by-effort", "enable_thinking")
        else:
            row = "variables-added" if given["enable_thinking"] else "thinking-off-by-default"
            chat.note(row, "enable_thinking")
    spread = spread_variables(given)
    preserve = given.get("preserve_reasoning")
    if unset & preserve_reasoning_variables(enabled=True).keys() & spread.keys():
        chat.note("reasoning-preserved" if preserve else "reasoning-dropped", "preserve_reasoning")
    if "reasoning_strength" in unset & spread.keys():
        chat.note("reasoning-effort-spread", "reasoning_effort")
