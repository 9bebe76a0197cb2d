"""What ordinary but large requests cost on official releases: `python -m tests.bench.long_agent [--only TEXT]`.

Four requests: 1,000 tool calls, 200 tools of 20 parameters, one message of 4 MB, 10,000 short messages. Each
is rendered in both dialects, where the template renders a small request of the same kind. A row that hits a limit is a
fault, exit code 1 then; but for 10,000 messages where rule SC105 says that the cost of the template is quadratic. Needs
../shared.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from typing import Any

from jinjarun import JinjarunError, LimitExceeded, Template
from probes.linter.lint import lint
from tests.bench.rules_over_corpus import manifest, officials
from tests.conformance.golden import ENGINES, NO_SHARED, have_shared, template_source

Request = dict[str, Any]


def agent(calls: int) -> Request:
    """A question, and `calls` rounds of one call and its result, with the tool offered."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the failing test and mend it."}]
    for i in range(calls):
        arguments = {"path": f"src/module_{i}.py", "first": i, "last": i + 40}
        call = {"id": f"call{i:05}", "type": "function", "function": {"name": "read_file", "arguments": arguments}}
        messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
        result = f"def function_{i}(a, b):\n    return a + b * {i}\n"
        messages.append({"role": "tool", "tool_call_id": call["id"], "name": "read_file", "content": result})
    return {"messages": messages, "tools": [tool(0, 3)]}


def tool(number: int, parameters: int) -> dict[str, Any]:
    properties = {
        f"parameter_{i}": {"type": "string", "description": f"What parameter {i} of tool {number} is for"}
        for i in range(parameters)
    }
    name = "read_file" if number == 0 else f"tool_{number}"
    schema = {"type": "object", "properties": properties, "required": list(properties)[:2]}
    function = {"name": name, "description": f"Tool number {number}", "parameters": schema}
    return {"type": "function", "function": function}


def tools(count: int, parameters: int) -> Request:
    return {
        "messages": [{"role": "user", "content": "Which tool fits?"}],
        "tools": [tool(i, parameters) for i in range(count)],
    }


def message(size: int) -> Request:
    line = "All work and no play makes a long message.\n"
    return {"messages": [{"role": "user", "content": line * (size // len(line))}]}


def chat(count: int) -> Request:
    sides = ("user", "assistant")
    return {"messages": [{"role": sides[i % 2], "content": f"Line {i}."} for i in range(count - 1 + count % 2)]}


REQUESTS: dict[str, tuple[Request, Request]] = {
    "1,000 tool calls": (agent(2), agent(1000)),
    "200 tools": (tools(2, 2), tools(200, 20)),
    "4 MB in a message": (message(100), message(4_000_000)),
    "10,000 messages": (chat(3), chat(10_001)),
}
"""By name a small request, which says whether the template takes the kind, and the large one."""


SLOW = "10,000 messages"
"""What a template whose cost is quadratic need not render."""


def is_quadratic(slug: str) -> bool:
    return bool(lint(template_source(slug), select=["SC105"]).findings)


def rows(slug: str) -> Iterator[tuple[str, str, str, int, float]]:
    """Dialect, request, what became of it, steps and CPU seconds."""
    for dialect in ENGINES:
        template = Template(template_source(slug), dialect)
        for name, (small, large) in REQUESTS.items():
            try:
                template.render(**small, bos_token="<s>", eos_token="</s>")
            except JinjarunError:
                continue
            start = time.process_time()
            try:
                answer = template.render(**large, bos_token="<s>", eos_token="</s>")
            except LimitExceeded as error:
                yield dialect, name, f"hits {error.limit}", 0, time.process_time() - start
            except JinjarunError as error:
                yield dialect, name, f"fails: {error}"[:60], 0, time.process_time() - start
            else:
                yield dialect, name, "ok", answer.cost, time.process_time() - start


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.long_agent", description=__doc__.split("\n")[0])
    parser.add_argument("--only", metavar="TEXT", default="", help="only templates whose name holds this text")
    args = parser.parse_args()
    if not have_shared():
        sys.exit(NO_SHARED)
    tried = faults = 0
    dearest: list[tuple[float, str]] = []
    for slug in [slug for slug in manifest() if slug in officials() and args.only in slug]:
        try:
            found = list(rows(slug))
        except JinjarunError as error:
            print(f"{slug}: does not load: {error}"[:100])
            continue
        for dialect, name, outcome, steps, seconds in found:
            tried += 1
            dearest.append((seconds, f"{slug} {dialect} {name}: {outcome}, {steps:,} steps"))
            if outcome.startswith("hits"):
                excused = name == SLOW and is_quadratic(slug)
                faults += not excused
                print(f"{slug} {dialect} {name}: {outcome}{', as SC105 says' if excused else ''}")
    for seconds, text in sorted(dearest, reverse=True)[:10]:
        print(f"{seconds:6.2f} s  {text}")
    print(f"{tried} renders, {faults} hit a limit that they should not")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
