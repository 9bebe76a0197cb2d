"""`jinjarun scan`: its options, its files, and what it ends with."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import sys
from concurrent.futures import wait
from typing import TYPE_CHECKING, Any

from jinjarun.errors import InputError, WorkerError
from jinjarun.limits import Limits
from probes.commands import Command
from probes.commands.options import limit
from probes.commands.output import CLEAN, FINDING, INTERRUPTED, UNUSABLE, complain, describe, tell
from probes.scanner.begun import remove
from probes.scanner.running import Lines, Progress, Stoppable, whole_file

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from concurrent.futures import Executor, Future

    from probes.reporters.formats import Format, Out
    from probes.results.rows import Row
    from probes.results.tally import Tally
    from probes.scanner.scan import Submits

LOST = 3
"""Exit code where the executor is gone."""
DASK = "dask://"
LOOK_SECONDS = 5.0
WITHOUT_WORKERS = 12
"""How many looks in a row a cluster may have no worker before nobody is waited for any more."""
BEFORE = ".before"
"""What a resumed scan calls the file that it goes on from, until it has written all of it anew."""

EPILOG = """\
PATH is a folder, a file that may hold a template, a repository in the local
Hugging Face cache (org/name), hf-cache for all of that cache, JSON Lines or
Parquet of records with id and tokenizer_config, or - for standard input: a
path or a record on each line.
"""


def rows_or_limit(text: str) -> int | tuple[str, int]:
    """`--limit`: a number of rows, or NAME=VALUE as of other commands."""
    if "=" in text:
        return limit(text)
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is neither a number of rows nor NAME=VALUE") from None


def add_options(added: argparse.ArgumentParser) -> None:
    from probes.reporters.registry import FORMATS

    added.epilog = EPILOG
    added.add_argument("path", metavar="PATH", nargs="+", help="what to look through, see below")
    added.add_argument("--jobs", type=int, metavar="N", help="templates probed at a time (default: one a CPU core)")
    added.add_argument("--depth", choices=("quick", "full"), default="full", help="quick: only engines and caps")
    added.add_argument(
        "--limit",
        dest="bounds",
        type=rows_or_limit,
        action="append",
        default=[],
        metavar="N",
        help="end after N rows; as NAME=VALUE, what a template may spend (steps=5000000)",
    )
    added.add_argument(
        "--follow-symlinks", action="store_true", help="also follow links to folders, and links that leave the folder"
    )
    added.add_argument("--cache", metavar="DIR", help="keep answers there, and use those that are there")
    added.add_argument("--resume", action="store_true", help="go on with a scan that was cut off; needs the same --out")
    added.add_argument("--executor", metavar="URL", help="dask://host:port: have templates probed by that cluster")
    added.add_argument("--format", choices=FORMATS, metavar="NAME", help=f"one of: {', '.join(FORMATS)}")
    added.add_argument("--out", metavar="FILE", help="write there; its ending chooses the format")
    added.add_argument(
        "--fail-on",
        choices=("error", "warning", "never"),
        default="error",
        help="exit with 1 for findings of this severity or worse (default error)",
    )


def run(args: argparse.Namespace) -> int:
    """Exit code 1 for a finding, as `--fail-on` says, or a file that cannot be read; 3 where the executor is lost; 130
    after Ctrl-C."""
    from probes.reporters.registry import chosen_format
    from probes.scanner.scan import scan
    from probes.scanner.walk import count

    rows_wanted = next((bound for bound in reversed(args.bounds) if isinstance(bound, int)), None)
    made = chosen_format("json" if args.json else args.format, args.out)
    with contextlib.ExitStack() as open_now:
        executor = None if args.executor is None else open_now.enter_context(dask_executor(args.executor))
        known = open_now.enter_context(earlier_rows(args)) if args.resume else ()
        rows = Stoppable(
            scan(
                args.path,
                executor=executor,
                jobs=args.jobs,
                depth=args.depth,
                limit=rows_wanted,
                limits=Limits(**dict(bound for bound in args.bounds if isinstance(bound, tuple))),
                follow_symlinks=args.follow_symlinks,
                cache=args.cache,
                known=known,
                stdin=sys.stdin.buffer if sys.stdin is not None else None,
            )
        )
        watched: Iterator[Row] = iter(rows)
        if sys.stderr is not None and sys.stderr.isatty():
            total = count(args.path, follow_symlinks=args.follow_symlinks)
            total = total if rows_wanted is None or total is None else min(total, rows_wanted)
            watched = Progress(sys.stderr, total).watching(watched)
        out = open_now.enter_context(output(args.out, made))
        tally = made.write(watched, out)
    if rows.stopped:
        complain("stopped; what is done is kept", INTERRUPTED)
        return INTERRUPTED
    if rows.lost is not None:
        return complain(f"{describe(rows.lost)[0]}; what is done is kept, and --resume goes on", LOST)
    if args.resume and args.out is not None:
        remove(args.out + BEFORE)
    if args.out is not None:
        from probes.reporters.figures import headline

        tell([f"{args.out}: {headline(tally)}"])
    return UNUSABLE if any(map(is_missing, args.path)) else exit_code(tally, args.fail_on)


def is_missing(target: str) -> bool:
    """Whether nothing is where the command line says, which is wrong usage, not an unreadable file."""
    from jinjarun.sources import FAMILY, SCHEMES, STDIN
    from jinjarun.sources.hf_cache import find_snapshot, is_repository
    from probes.scanner.walk import CACHE

    if target in (STDIN, CACHE) or target.startswith((*SCHEMES, FAMILY)) or os.path.lexists(target):
        return False
    return not is_repository(target) or find_snapshot(target) is None


def exit_code(tally: Tally, fail_on: str) -> int:
    severities = {"error": ("error",), "warning": ("error", "warning"), "never": ()}[fail_on]
    found = any(tally.in_templates["severity", severity] for severity in severities)
    return FINDING if found or (severities and tally.statuses["error"]) else CLEAN


@contextlib.contextmanager
def output(path: str | None, made: Format) -> Iterator[Out]:
    if path is None:
        yield sys.stdout.buffer
    elif made.lines:
        lines = Lines(path)
        try:
            yield lines
        finally:
            lines.close()
    else:
        with whole_file(path) as file:
            yield file


def prepare(args: argparse.Namespace) -> None:
    """Where a scan goes on: what is in its file joins what it went on from before, whole lines only."""
    from probes.reporters.registry import chosen_format

    made = chosen_format("json" if args.json else args.format, args.out)
    if not args.resume or args.cache is not None:
        return
    if args.out is None or made.name != "jsonl":
        raise InputError("--resume needs --cache, or --out with a .jsonl file", path="--resume")
    if not os.path.exists(args.out):
        return
    before = args.out + BEFORE
    if not os.path.exists(before):
        os.replace(args.out, before)
        return
    with open(args.out, "rb") as rows, open(before, "ab") as file:
        file.write(b"\n")
        for line in rows:
            if line.endswith(b"\n"):
                file.write(line)


@contextlib.contextmanager
def earlier_rows(args: argparse.Namespace) -> Iterator[Iterator[Row] | tuple[()]]:
    """The rows of the file that was cut off. It is kept beside the new one until that has all rows."""
    if args.cache is not None:
        yield ()
        return
    from probes.reporters.jsonl import read

    before = str(args.out) + BEFORE
    if not os.path.exists(before):
        yield ()
        return
    with open(before, "rb") as file:
        yield read(file)


@contextlib.contextmanager
def dask_executor(url: str) -> Iterator[Submits]:
    """`dask://host:port`, the address of a Dask scheduler."""
    if not url.startswith(DASK):
        raise InputError(f"{url}: is no executor; give {DASK}host:port", path="--executor")
    try:
        from distributed import Client
    except ImportError:
        raise InputError("a Dask cluster needs distributed: pip install 'jinjarun[dask]'", path="--executor") from None
    try:
        connect: Any = Client  # its signature has no types, and it may not be installed where types are checked
        client = connect("tcp://" + url.removeprefix(DASK), timeout="10s")
    except (OSError, ValueError) as error:
        raise InputError(f"{url}: no scheduler answers ({error})", path="--executor") from None
    logging.getLogger("distributed.client").setLevel(logging.CRITICAL)  # that it is lost, the scan tells
    with client:
        yield Cluster(client)


class Cluster:
    """A Dask client as an executor of a scan."""

    def __init__(self, client: Any) -> None:
        self._client = client
        self._executor: Executor = client.get_executor(pure=False)

    def submit(self, fn: Callable[..., Any], /, *args: Any) -> Waited:
        return Waited(self._executor.submit(fn, *args), self)

    def is_deserted(self) -> bool:
        """Whether the scheduler has no workers. One that does not answer is found out by the client itself."""
        try:
            return bool(self._client.scheduler_info().get("workers") == {})
        except (OSError, RuntimeError):
            return False


class Waited:
    """A call that a cluster has been given; it is waited for as long as there is somebody to answer it."""

    def __init__(self, future: Future[Any], cluster: Cluster) -> None:
        self._future = future
        self._cluster = cluster
        self.done, self.cancel = future.done, future.cancel

    def result(self) -> Any:
        deserted = 0
        while deserted < WITHOUT_WORKERS:
            wait([self._future], LOOK_SECONDS)
            if self._future.done():
                return self._future.result()
            deserted = deserted + 1 if self._cluster.is_deserted() else 0
        raise WorkerError("the cluster has no workers any more", reason="lost", function="scan")


COMMAND = Command(
    "probe every template of many files, each distinct one once",
    run,
    add_options,
    0,
    bounded=False,
    prepare=prepare,
    work=("probes.scanner.scan", "probes.reporters.figures"),
)
