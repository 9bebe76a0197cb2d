"""The law that the transformers dialect stands on: it gives what the real Jinja2 gives, or both fail.

`python -m tests.equals_reference [EXAMPLES]` checks it on that many generated templates (default 10,000).
"""

from __future__ import annotations

import re
import sys
import time
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from jinjarun.errors import JinjarunError, LimitExceeded, SandboxViolation
from jinjarun.reference import Reference
from jinjarun.template import Template
from tests.template_strategies import contexts, templates
from tests.typed_strategies import typed_contexts, typed_templates

CASES = st.tuples(templates(), contexts()) | st.tuples(typed_templates(), typed_contexts())
"""Templates with contexts for them: half of any expressions, which often fail, half of such as render."""

ADDRESS = re.compile(r" object(?: <[^>]*>)? at 0x[0-9a-f]+| at 0x[0-9a-f]+|<built-in method \w+ of \w+ object")
"""What Python prints of an object that has no text: not compared, for ours has no address."""


def answer(render: Any) -> tuple[str | None, JinjarunError | None]:
    try:
        return render(), None
    except JinjarunError as error:
        return None, error


def difference(source: str, context: dict[str, Any]) -> str | None:
    """How the two differ on `source`, None where they agree or cannot be compared."""
    wanted, their_error = answer(lambda: Reference(source).render_context(context, now=0))
    got, our_error = answer(lambda: Template(source, "transformers").render_context(context, now=0).text)
    if isinstance(our_error, (LimitExceeded, SandboxViolation)):
        return None
    if wanted is not None and ADDRESS.search(wanted):
        return None
    if wanted == got and (their_error is None) == (our_error is None):
        return None
    return f"{source!r}\n{context!r}\nJinja2: {wanted!r} {their_error}\nours:   {got!r} {our_error}"


def main() -> int:
    examples = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    counted = 0

    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.generate, Phase.shrink],
    )
    @given(CASES)
    def law(case: tuple[str, dict[str, Any]]) -> None:
        nonlocal counted
        counted += 1
        found = difference(*case)
        assert found is None, found

    started = time.process_time()
    law()
    print(f"{counted} generated templates: no difference ({time.process_time() - started:.0f} s CPU)")
    return 0


if __name__ == "__main__":
    sys.exit(main())
