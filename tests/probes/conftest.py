"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from probes import cli

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsysbinary: pytest.CaptureFixture[bytes]) -> Run:
    """Calls the command line in this process: exit code, standard output, standard error."""

    def call(*arguments: object) -> tuple[int, str, str]:
        try:
            code = cli.main([str(argument) for argument in arguments])
        except SystemExit as error:
            code = int(str(error.code))
        captured = capsysbinary.readouterr()
        return code, captured.out.decode(), captured.err.decode()

    return call
