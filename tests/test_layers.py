"""The layers of both packages: a module imports only from its own room and from rooms below, and never in a circle.

Imports inside of functions and those for types alone count too: what must be read together is one thing.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]

LAYERS = {
    "probes": [
        "cli pytest_plugin",
        "launch",
        "commands",
        "reporters",
        "comparison",
        "fuzzer linter scanner serve",
        "prober",
        "rules",
        "chapters",
        "laws",
        "rendering",
        "results",
        "chats",
        "report",
    ],
    "jinjarun": [
        "reference isolation",
        "responses serving",
        "template",
        "sources",
        "dialects",
        "runtime",
        "syntax",
        "limits sequences",
        "errors",
    ],
}
"""Rooms from the top down. Those of one line do not know each other."""


def modules() -> dict[str, Path]:
    """Every module of both packages by its name, but for the program that calls both."""
    found = {}
    for package in LAYERS:
        for path in (ROOT / package).rglob("*.py"):
            if path.name == "__main__.py":
                continue
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path
    return found


MODULES = modules()


def imports(module: str) -> Iterator[str]:
    """The modules of ours that `module` imports anywhere."""
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names if name.name in MODULES)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for name in node.names:
                inner = f"{node.module}.{name.name}"
                yield inner if inner in MODULES else node.module


GRAPH = {module: {name for name in imports(module) if name in MODULES} for module in MODULES}


def room(module: str) -> str:
    return module.split(".")[1]


@pytest.mark.parametrize("package", LAYERS)
def test_imports_go_down(package: str) -> None:
    floor = {name: level for level, names in enumerate(LAYERS[package]) for name in names.split()}
    inside = [module for module in MODULES if module.startswith(f"{package}.")]
    assert {room(module) for module in inside} <= set(floor), "a room without a layer: give it one in LAYERS"
    upward = [
        f"{module} imports {name}"
        for module in inside
        for name in sorted(GRAPH[module])
        if name.startswith(f"{package}.") and room(name) != room(module) and floor[room(name)] <= floor[room(module)]
    ]
    assert upward == []


def test_jinjarun_knows_nothing_of_probes() -> None:
    assert [
        module for module in MODULES if module.startswith("jinjarun") for name in GRAPH[module] if "probes" in name
    ] == []


def test_no_import_goes_in_a_circle() -> None:
    # The two front doors import lazily whatever they name, and nothing inside imports them.
    inner = {module: names - set(LAYERS) for module, names in GRAPH.items() if module not in LAYERS}
    try:
        tuple(TopologicalSorter(inner).static_order())
    except CycleError as error:
        pytest.fail(f"a circle of imports: {' -> '.join(error.args[1])}")


def test_the_table_can_fail() -> None:
    assert "probes.rendering.renders" in GRAPH["probes.prober"]
