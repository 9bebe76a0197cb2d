"""Why llama.cpp's nine flags and what a template writes disagree."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from probes.renders import Renders
    from probes.report import Answer


def why_caps_differ(renders: Renders, name: str, flag: bool, answers: dict[str, Answer], main: str) -> str | None:
    if answers[main] == "unknown" or (answers[main] == "yes") == flag:
        return None
    return "TODO"
