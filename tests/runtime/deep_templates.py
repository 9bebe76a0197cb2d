"""Renders what goes deepest in the host, in a thread with little stack: `python -m ...deep_templates KB LEVELS`.

KB 0 renders in the main thread. Prints one line a template: what it gave, or the error.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator

from jinjarun import JinjarunError, Limits, Template


def nested(count: int, opening: str, closing: str) -> str:
    return opening * count + "1" + closing * count


def sources(levels: int) -> Iterator[str]:
    """Each is as deep as `levels` of depth and of data allow, or a little deeper; brackets go up to 100."""
    lazy = "{%% set ns = namespace(g=[1, 2]) %%}{%% for i in range(%d) %%}{%% set ns.g = ns.g|%s %%}{%% endfor %%}"
    for name in (
        "map('string')",
        "select",
        "batch(2)",
        "unique",
        "selectattr('x')",
        "map('default', 1)",
        "groupby('x')",
    ):
        yield lazy % (240 * levels // 500, name) + "{{ ns.g|list|length }}"
        yield lazy % (240 * levels // 500, name) + "{% for i in ns.g if i %}{{ i|string|length }}{% endfor %}"
    yield "{{ [1]" + "|map('string')" * 240 + "|list }}"
    yield "{% macro m() %}{{ m(*[], **{}) }}{% endmacro %}{{ m() }}"
    yield "{% macro m() %}{{ [1]|map('string')|join(m()) }}{% endmacro %}{{ m() }}"
    yield "{% macro m(a=m()) %}{{ a }}{% endmacro %}{{ m() }}"
    yield "{% macro m() %}{% call m() %}{{ caller() }}{% endcall %}{% endmacro %}{{ m() }}"
    yield "{% for i in [1] if i recursive %}{{ loop([1]|map('string')) }}{% endfor %}"
    yield "{% block b %}{{ self.b() }}{% endblock %}"
    yield "{{ " + nested(90, "x|default(", ")") + " }}"
    yield "{{ " + nested(90, "dict(a=", ")") + "|string|length }}"
    yield "{{ " + "not " * (levels - 9) + "1 }}"
    yield "{{ 1" + "|default(2, **{})" * (levels // 2 - 9) + " }}"
    yield "{{ " + "1 if 1 else " * (levels - 9) + "1 }}"
    opened = min(levels, 480) - 20
    yield nested(opened, "{% if 1 %}", "{% endif %}")
    yield nested(opened // 2, "{% set x %}", "{% endset %}") + "{{ x }}"
    yield nested(opened // 2, "{% filter upper %}", "{% endfilter %}")
    yield nested(opened, "{% macro m() %}", "{% endmacro %}{{ m() }}")
    data = "{%% set ns = namespace(a=1) %%}{%% for i in range(%d) %%}{%% set ns.a = %s %%}{%% endfor %%}"
    for made in ("[ns.a]", "{'x': ns.a}", "(ns.a, 1)", "namespace(x=ns.a)"):
        for read in ("ns.a|string|length", "ns.a|tojson|length", "ns.a == ns.a", "[ns.a]|unique|list|length"):
            yield data % (levels // 5 - 3, made) + "{{ " + read + " }}"
    yield "{{ deep|tojson|length }}{{ deep|string|length }}"


def outcomes(levels: int) -> Iterator[str]:
    limits = Limits(depth=levels, data_depth=levels // 5, steps=500_000)
    deep: list[object] = []
    for _ in range(levels // 5 - 3):
        deep = [deep]
    for source in sources(levels):
        for dialect in ("transformers", "llama.cpp"):
            for spans in (False, True) if levels <= 500 else (False,):
                try:
                    answer = Template(source, dialect, limits).render_context({"deep": deep}, spans=spans).text
                except JinjarunError as error:
                    answer = str(error).partition("\n")[0]
                yield f"{dialect} {spans} {source[:80]!r} {answer[:200]!r}"


def main() -> None:
    kilobytes, levels = map(int, sys.argv[1:])
    if kilobytes:
        threading.stack_size(kilobytes * 1024)
        thread = threading.Thread(target=lambda: print(*outcomes(levels), sep="\n"))
        thread.start()
        thread.join()
    else:
        print(*outcomes(levels), sep="\n")


if __name__ == "__main__":
    main()
