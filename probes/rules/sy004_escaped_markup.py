"""The text of the template carries escapes that a copy left behind.

What it does: looks in what the template itself writes for HTML entities inside of markers (`&lt;|user|&gt;`) and for
`\\n` written out as a backslash and a letter.

Why it is bad: the marker that the model knows is one token, the escaped one a dozen of ordinary characters; and a line
break that is two characters is none. The second is a warning: the model reads two letters more, and no marker is lost.

Example: `&lt;|im_start|&gt;{{ m.role }}`, copied from a web page.

Use instead: the characters themselves; inside of a string of Jinja, and only there, `'\\\\n'` is a line break.

References: strings of Jinja2 know the escapes of Python's; text outside of tags knows none.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from jinjarun.errors import quote
from jinjarun.syntax.nodes import Const, Data
from probes.rules.base import Rule
from probes.rules.tree import nodes
from probes.rules.view import Hit

if TYPE_CHECKING:
    from probes.report import Severity
    from probes.rules.view import Facts

ENTITY = re.compile(r"&(?:lt|#60|#x3c);/?[|\w][^\s&]{0,40}?&(?:gt|#62|#x3e);|&#39;|&#x27;", re.IGNORECASE)
BREAK = re.compile(r"(?:[>\]|:]|\A)\\n(?=[<\[{]|\Z|\\n)")
"""A written-out line break beside a marker or at the border of a text; elsewhere it may be an explanation."""


def check(facts: Facts) -> list[Hit]:
    hits: list[Hit] = []
    for node in nodes(facts.source):
        text = node.text if isinstance(node, Data) else node.value if isinstance(node, Const) else None
        if not isinstance(text, str):
            continue
        found = ENTITY.search(text) or (BREAK.search(text) if isinstance(node, Data) else None)
        if found is None:
            continue
        what = "an HTML escape" if found[0].startswith("&") else "a line break as backslash and n"
        message = f"the template writes {what}: {quote(found[0])!r}"
        line = node.line + text.count("\n", 0, found.start())
        engines = [path for path in facts.renders.paths if facts.renders.loads(path) is None]
        severity: Severity = "error" if found[0].startswith("&") else "warning"
        hits.append(Hit(message=message, engines=engines, line=line, severity=severity, cause=f"escapes {what}"))
    return hits


RULE = Rule(
    code="SY004",
    name="escaped-markup",
    severity="error",
    summary="The source carries HTML or JSON escapes left by a copy.",
    suggestion="write the characters themselves",
    check=check,
    triggers="{% for m in messages %}&lt;|{{ m.role }}|&gt;{{ m.content }}&lt;|end|&gt;\n{% endfor %}",
    repaired="{% for m in messages %}<|{{ m.role }}|>{{ m.content }}<|end|>\n{% endfor %}",
    healthy=(
        "{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>' + '\\n' }}{% endfor %}"
        "{% if tools %}Escape &, < and > in arguments as &amp;, &lt; and &gt;.{% endif %}"
    ),
    documentation=__doc__,
)
