"""One page that needs nothing else: figures, a matrix of all templates, and everything known of each.

Details go out as they come, so memory grows with the distinct templates by a line of the matrix each. The page loads
nothing from anywhere (its content security policy says so), and writes strangers' text as text only.
"""

from __future__ import annotations

from base64 import b64encode
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from probes.reporters.escaping import attribute, script_json
from probes.reporters.figures import headline
from probes.reporters.formats import Format
from probes.results.rows import NO_FAMILY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from probes.reporters.formats import Out
    from probes.results.rows import Row, Summary
    from probes.results.tally import Tally

PLACES = 20
"""Files that are named for one template."""
TROUBLES = 500
"""Files that are named because they could not be judged."""


def write(rows: Iterable[Row], out: Out, tally: Tally) -> None:
    page = files("probes.reporters") / "page"
    head, _, rest = (page / "page.html").read_text("utf-8").partition("<!-- details -->")
    middle, _, foot = rest.partition("<!-- data -->")
    out.write(head.replace("/* style */", (page / "page.css").read_text("utf-8")).encode())
    lines: dict[str, dict[str, Any]] = {}
    troubles: list[tuple[str, str, str]] = []
    for row in rows:
        if row.error is not None and len(troubles) < TROUBLES:
            troubles.append((row.id, row.status, row.error["message"]))
        if row.sha256 is None or row.summary is None:
            continue
        if row.first:
            lines[row.sha256] = _line(row, row.summary)
            detail = row.detail()
            if detail is not None:
                packed = b64encode(detail).decode()
                out.write(f'<script type="text/plain" id={attribute(row.sha256)}>{packed}</script>\n'.encode())
        line = lines[row.sha256]
        line["files"] += 1
        if len(line["places"]) < PLACES:
            line["places"].append(row.id if row.key is None else f"{row.id} {row.key}")
    data = {
        "headline": headline(tally),
        "tally": tally.to_dict(),
        "templates": list(lines.values()),
        "troubles": troubles,
        "no_family": NO_FAMILY,
    }
    out.write(middle.encode())
    out.write(f'<script type="application/json" id="data">{script_json(data)}</script>\n'.encode())
    out.write(foot.replace("/* script */", (page / "page.js").read_text("utf-8")).encode())


def _line(row: Row, summary: Summary) -> dict[str, Any]:
    """A line of the matrix. Laws are told as "broken", so that yes is bad in their columns and good in the others."""
    return {
        "sha": row.sha256,
        "id": row.id,
        "name": row.name,
        "files": 0,
        "places": [],
        "tool": summary.tool,
        "report": summary.report,
        "family": summary.family,
        "bytes": summary.bytes,
        "errors": summary.count("error"),
        "warnings": summary.count("warning"),
        "infos": summary.count("info"),
        "codes": list(dict.fromkeys(found.code for found in summary.findings)),
        "engines": {path: [one.rendered if one.loads else None, one.of] for path, one in summary.engines.items()},
        "caps": summary.caps,
        "observed": summary.observed,
        "laws": summary.laws,
    }


FORMAT = Format("html", "one page to look through, that needs nothing else", write, (".html", ".htm"))
