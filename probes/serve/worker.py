"""What `jinjarun serve` asks its workers: functions that take and give plain JSON, for a process that can be killed.

A setting crosses as an object (`to_json`), the body of a request as the text that the client sent.
"""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, JinjarunError, LimitExceeded
from jinjarun.limits import Limits
from jinjarun.sequences import common_prefix
from jinjarun.serving import server_json
from jinjarun.serving.caps import BUILD, chat_template_caps
from probes.prober import probe
from probes.rendering.paths import Setting, answer_on_path, llama_server
from probes.rendering.renders import LLAMA_SERVER

if TYPE_CHECKING:
    from probes.rendering.paths import PathAnswer

ANSWER = {"role": "assistant", "content": "Use a StringBuilder."}
QUESTION = {"role": "user", "content": "Show code."}
RESULT = "<project>...</project>"
"""What the next request adds to a conversation: the model's answer, the user's next question, a tool's result."""


def warm() -> None:
    """What a new worker does before it is locked down: this module's imports are all that it needs."""


def to_json(setting: Setting) -> dict[str, Any]:
    """The setting as it crosses to a worker."""
    now = setting.now
    return {
        "templates": dict(setting.templates),
        "bos_token": setting.bos_token,
        "eos_token": setting.eos_token,
        "add_bos": setting.add_bos,
        "add_eos": setting.add_eos,
        "default_kwargs": dict(setting.default_kwargs),
        "now": now.isoformat() if isinstance(now, datetime) else now,
        "format": setting.format,
        "limits": asdict(setting.limits),
    }


def from_json(fields: dict[str, Any]) -> Setting:
    now = fields["now"]
    moment = datetime.fromisoformat(now) if isinstance(now, str) else now
    return Setting(**{**fields, "now": moment, "limits": Limits(**fields["limits"])})


def start(setting: dict[str, Any]) -> dict[str, Any]:
    """`GET /props` of the server, without what it knows of its own process. Raises where it does not start."""
    started = from_json(setting)
    caps = chat_template_caps(started.format, started.limits) if started.format else llama_server(started).caps
    props = {
        "default_generation_settings": {"params": {}, "n_ctx": 0},
        "total_slots": 1,
        "model_path": "",
        "modalities": {"vision": False, "video": False, "audio": False},
        "chat_template": started.format or started.templates.get("default", ""),
        "chat_template_caps": caps.to_dict(),
        "bos_token": started.bos_token,
        "eos_token": started.eos_token,
        "build_info": f"{BUILD}-jinjarun",
        "is_sleeping": False,
    }
    if started.format is None and started.templates.get("tool_use"):
        props["chat_template_tool_use"] = started.templates["tool_use"]
    return props


def apply_template(setting: dict[str, Any], body: str) -> dict[str, Any]:
    """`POST /apply-template`."""
    started = from_json(setting)
    return {"prompt": answer_on_path(LLAMA_SERVER, started, _parsed(body, started)).text}


def probe_template(setting: dict[str, Any], body: str) -> dict[str, Any]:
    """`POST /probe`: the report on the template of the body, or else on the server's own one."""
    started = from_json(setting)
    asked = _object(_parsed(body, started)) if body.strip() else {}
    started = _with_template(started, asked)
    report = probe(started.templates.get("default", ""), limits=started.limits, now=started.now)
    return json.loads(report.to_json(indent=None))  # type: ignore[no-any-return]  # a report is an object


def explain(setting: dict[str, Any], body: str) -> dict[str, Any]:
    """`POST /explain`: what a path makes of a request and of the next one, each a prompt or an error.

    The body has `request`, and where they are not the server's own, `template` and `path`. There is no next one after
    an error; of its prompt `shared` tells how many code points of the first one it begins with.
    """
    started = from_json(setting)
    asked = _object(_parsed(body, started))
    started = _with_template(started, asked)
    path = asked.get("path", LLAMA_SERVER)
    if not isinstance(path, str):
        raise InputError("path must be a string", path="path")
    request = asked.get("request")
    first = _outcome(path, started, request)
    following = _next_request(request) if "text" in first else None
    second = None if following is None else _outcome(path, started, following)
    if second is not None and "text" in second:
        second["shared"] = common_prefix(first["text"], second["text"])
    return {"path": path, "answer": first, "next": second}


def _outcome(path: str, setting: Setting, request: Any) -> dict[str, Any]:
    try:
        answer: PathAnswer = answer_on_path(path, setting, request, spans=True)
    except JinjarunError as error:
        return {"error": {**error.to_dict(), "name": error.name}}
    return answer.to_dict()


def _next_request(request: Any) -> dict[str, Any] | None:
    """The request that a client sends next: results for open calls, the model's answer, another question."""
    messages = request.get("messages") if isinstance(request, dict) else None
    if not isinstance(messages, list) or not messages or not isinstance(messages[-1], dict):
        return None
    last = messages[-1]
    added: list[dict[str, Any]] = []
    calls = last.get("tool_calls")
    if last.get("role") != "assistant":
        added = [ANSWER, QUESTION]
    elif isinstance(calls, list) and calls:
        ids = [call.get("id") if isinstance(call, dict) else None for call in calls]
        added = [{"role": "tool", "tool_call_id": str(one or ""), "content": RESULT} for one in ids]
    else:
        added = [QUESTION]
    return {**request, "messages": [*messages, *added]}


def _parsed(body: str, setting: Setting) -> Any:
    try:
        return server_json.parse(body, setting.limits)
    except LimitExceeded:
        raise
    except ValueError as error:
        raise InputError(f"the body is not JSON: {error}", path="body") from None


def _object(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InputError("the body must be a JSON object", path="body")
    return body


def _with_template(setting: Setting, asked: dict[str, Any]) -> Setting:
    """The setting with the template that was posted, which is then the only one."""
    text = asked.get("template")
    if text is None:
        return setting
    if not isinstance(text, str):
        raise InputError("template must be a string", path="template")
    return replace(setting, templates={"default": text}, format=None)
