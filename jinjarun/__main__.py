"""The program `jinjarun`, also as `python -m jinjarun`."""

from __future__ import annotations

import signal
import sys

if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # until `probes.launch` listens, Ctrl-C ends it without a traceback


def main() -> int:
    """Runs the command line and returns its exit code; 2 where another package has taken the name `probes`."""
    import probes

    if "ProbeReport" not in getattr(probes, "__all__", ()):
        where = getattr(probes, "__file__", None) or "a folder of that name"
        print(
            f"jinjarun: another package called probes was imported instead of jinjarun's own: {where}\n"
            "  run jinjarun from another folder, or in an environment of its own: pipx install jinjarun",
            file=sys.stderr,
        )
        return 2
    from probes.launch import main as run

    return run()


if __name__ == "__main__":
    sys.exit(main())
