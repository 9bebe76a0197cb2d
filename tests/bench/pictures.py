"""Makes docs/report.png again, the terminal as the README shows it: `python -m tests.bench.pictures`.

Needs Chromium, and the fonts of the machine decide what the letters look like.
"""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = Path(__file__).parents[2]
ARGUMENTS = ("probe", "family:mistral")
COLUMNS = 96
FONT_PIXELS, LINE_PIXELS, MARGIN = 15, 21, 18
PAGE = (
    f"<body style='margin:{MARGIN}px;background:{{background}}'><pre style='color:{{foreground}};margin:0;"
    f"font:{FONT_PIXELS}px/{LINE_PIXELS}px DejaVu Sans Mono,monospace'>{{code}}</pre></body>"
)


def terminal(arguments: tuple[str, ...]) -> str:
    """What a terminal of COLUMNS would show, with its colours."""
    environment = {**os.environ, "FORCE_COLOR": "1", "COLUMNS": str(COLUMNS), "TERM": "xterm-256color"}
    command = [sys.executable, "-m", "jinjarun", *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    return f"\x1b[32m$\x1b[0m jinjarun {' '.join(arguments)}\n{done.stdout}"


def main() -> int:
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("there is no Chromium on this machine")
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), force_terminal=True)
    text = terminal(ARGUMENTS).rstrip("\n")
    console.print(Text.from_ansi(text), soft_wrap=True)
    html = console.export_html(theme=MONOKAI, code_format=PAGE, inline_styles=True)
    height = LINE_PIXELS * (text.count("\n") + 1) + 2 * MARGIN
    width = round(COLUMNS * FONT_PIXELS * 0.603) + 2 * MARGIN
    with tempfile.TemporaryDirectory() as folder:
        page = Path(folder) / "page.html"
        page.write_text(html, encoding="utf-8")
        picture = ROOT / "docs" / "report.png"
        command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={width},{height}", f"--screenshot={picture}", page.as_uri()]
        subprocess.run(command, check=True, capture_output=True)
    print(f"{picture} is written, {width} x {height}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
