"""This project as a command of `python -m tests.conformance --command`, and an example of one."""

from __future__ import annotations

import argparse
import json
import sys

from jinjarun.errors import JinjarunError
from jinjarun.template import Template
from tests.conformance.golden import ENGINES


def answer(line: str, dialect: str) -> dict[str, str]:
    row = json.loads(line)
    try:
        rendered = Template(row["template"], dialect).render_context(row["context"], now=row["now"])
    except JinjarunError as error:
        return {"error": str(error)}
    try:
        return {"output": rendered.data.decode()}
    except UnicodeDecodeError:
        return {"output_hex": rendered.data.hex()}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.conformance.ours", description=__doc__)
    parser.add_argument("--dialect", choices=list(ENGINES), default="llama.cpp")
    dialect = parser.parse_args().dialect
    for line in sys.stdin:
        print(json.dumps(answer(line, dialect)), flush=True)


if __name__ == "__main__":
    main()
