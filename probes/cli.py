"""The command `jinjarun` as a module: `python -m probes.cli`, and `main` for whoever calls it from Python."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from probes import launch

if TYPE_CHECKING:
    from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command line, prints every failure as one message, and returns the exit code.

    Without `argv` it is the program: the command runs in a worker of its own, behind walls (`probes.launch`). With it,
    it runs in this process without any.
    """
    if argv is None:
        return launch.main()
    from probes.commands import program

    return program.main(argv)


if __name__ == "__main__":
    sys.exit(main())
