"""The worker of a command (`probes.launch` is its parent): walls first, then the strangers' files.

What a command may read and write is what its arguments name, which is known before anything is read: `READ`, `TARGETS`
and the others below say it for each option that takes a path.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import ipaddress
import json
import os
import signal
import sys
from typing import TYPE_CHECKING, Any, NoReturn
from urllib.parse import urlsplit

from jinjarun.isolation.sandbox import Allowed, close_in, die_with
from jinjarun.sources import FAMILY, SCHEMES, STDIN
from jinjarun.sources.hf_cache import cache_folder
from probes.chats.corpus import corpus_folder
from probes.linter.places import files_of, find_targets
from probes.scanner.begun import allow_removal, begin, begin_lines

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

TARGETS = ("template", "new", "upstream", "path")
"""Options that name templates, in all the ways in which that can be done."""
READ = (
    "messages",
    "tools",
    "request",
    "response",
    "prefix",
    "tokenizer",
    "chat_template_file",
    "ignore_file",
    "baseline",
)
"""Options that name a file to read."""
WRITTEN = ("out", "export", "write_baseline")
"""Options that name a file to write."""
FOLDERS = ("cache", "database", "dir")
"""Options that name a folder to write into."""

SCAN_CACHE = "hf-cache"
ALL = os.path.abspath(os.sep)
MEGABYTE = 1_000_000
POOL_MEGABYTES = 4000
"""Of a process that has workers: what strangers wrote costs those, and it has no --memory."""


def serve(parent: int, told: int, arguments: list[str]) -> None:
    """The life of a worker; only `probes.launch` calls this. Ends the process."""
    die_with(parent)
    with contextlib.suppress(OSError):
        os.setsid()
    os.closerange(3, told)
    os.closerange(told + 1, 1 << 16)
    from probes.commands import command_named, program

    def raise_walls(args: argparse.Namespace) -> None:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
        work = command_named(args.command).work
        if work:
            _raise_walls(args, told, work)

    given = [bytes.fromhex(argument).decode("utf-8", "surrogateescape") for argument in arguments]
    try:
        code = program.main(given, before_run=raise_walls)
    except SystemExit as ended:
        code = int(ended.code or 0)
    _end(code)


def _end(code: int) -> NoReturn:
    """Ends without what Python does last: it takes longer than some commands, and writes nothing."""
    with contextlib.suppress(Exception):
        atexit._run_exitfuncs()
        _kept.close()
        sys.stderr.flush()
    os._exit(code)


def _raise_walls(args: argparse.Namespace, told: int, work: tuple[str, ...]) -> None:
    for module in work:
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    _tell(told, {"seconds": _seconds(args), "acts": _begin_files(args, told)})
    close_in(allowed(args), getattr(args, "memory", POOL_MEGABYTES) * MEGABYTE)


def _tell(told: int, plan: dict[str, Any]) -> None:
    data = memoryview(json.dumps(plan).encode() + b"\n")
    while data:
        data = data[os.write(told, data) :]


def _seconds(args: argparse.Namespace) -> float | None:
    """--timeout is for each template; a scan and a server, which have none, go on as long as they have to."""
    timeout: float | None = getattr(args, "timeout", None)
    several = isinstance(getattr(args, "template", None), list)
    return timeout * max(1, len(_targets(args))) if timeout is not None and several else timeout


def _targets(args: argparse.Namespace) -> list[str]:
    found: list[str] = []
    for name in _named(args, ("template",)):
        with contextlib.suppress(Exception):  # what is wrong with it, the command says
            found += find_targets(name)
    return found


def _begin_files(args: argparse.Namespace, told: int) -> list[list[str]]:
    """What the parent is to do with the files that are told to be whole: to move [from, to], to remove [what]."""
    acts: list[list[str]] = []
    for path in _named(args, WRITTEN):
        if args.command == "scan" and _is_lines(args):
            begin_lines(path)
            if args.resume:
                from probes.commands.scan import BEFORE

                allow_removal(path + BEFORE, told, len(acts))
                acts.append([os.path.abspath(path + BEFORE)])
            continue
        file = begin(path, told, len(acts))
        if file.staged is not None:
            acts.append([file.staged, file.path])
        else:
            file.tell = None
    return acts


def _is_lines(args: argparse.Namespace) -> bool:
    from probes.reporters.registry import chosen_format

    return chosen_format("json" if args.json else args.format, args.out).lines


def _named(args: argparse.Namespace, options: tuple[str, ...]) -> list[str]:
    found: list[str] = []
    for option in options:
        value = getattr(args, option, None)
        found += value if isinstance(value, list) else [] if value is None else [value]
    return found


def allowed(args: argparse.Namespace) -> Allowed:
    """What a command may do, by its arguments alone."""
    targets = _named(args, TARGETS)
    servers = [urlsplit(target) for target in targets if target.startswith(SCHEMES)]
    if args.command == "scan" and args.executor:
        servers.append(urlsplit(args.executor))
    with contextlib.suppress(ValueError):
        return Allowed(
            read=tuple(_readable(args, targets)),
            write=tuple(_writable(args, targets)),
            connect=tuple(server.port or (443 if server.scheme == "https" else 80) for server in servers),
            listen=(args.port,) if args.command == "serve" else (),
            look_up=any(not _is_local(server.hostname or "") for server in servers)
            or (args.command == "serve" and not _is_local(args.host)),
            processes=args.command in ("scan", "serve") or (args.command == "lint" and len(_targets(args)) > 1),
        )
    return Allowed()  # an address that is none: the command says so


def _is_local(host: str) -> bool:
    """Whether no name has to be looked up."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return True


def _readable(args: argparse.Namespace, targets: list[str]) -> Iterator[str]:
    yield str(corpus_folder())
    yield from (path for path in _named(args, READ) if path != STDIN)
    if args.command == "snapshot":
        yield from _named(args, ("dir",)) or map(_beside, targets)
    if args.command == "scan":
        if args.follow_symlinks or args.executor or STDIN in targets:
            yield ALL  # only reading tells which files are meant; a cluster's library looks all over the machine
        if args.resume and args.out is not None:
            from probes.commands.scan import BEFORE

            yield args.out + BEFORE
    for target in targets:
        if target == SCAN_CACHE and args.command == "scan":
            yield cache_folder()
        elif not target.startswith((*SCHEMES, FAMILY)) and target != STDIN:
            yield from files_of(target)


def _writable(args: argparse.Namespace, targets: list[str]) -> Iterator[str]:
    for folder in _named(args, FOLDERS):
        if not (args.command == "fuzz" and folder == "none") and not getattr(args, "check", False):
            os.makedirs(folder, exist_ok=True)
            yield folder
    if args.command == "snapshot" and not args.check and args.dir is None:
        yield from map(_beside, targets)
    if args.command in ("compare", "fuzz", "scan"):  # Hypothesis, and answers without --cache
        yield _temporary()


def _beside(target: str) -> str:
    """The folder of a template, where its snapshot is."""
    return target if os.path.isdir(target) else os.path.dirname(os.path.abspath(target))


def _temporary() -> str:
    """A folder for what would be in the system's folder for temporary files, kept as long as this process lives."""
    import tempfile

    from probes.scanner.temporary import temporary_folder

    tempfile.tempdir = _kept.enter_context(temporary_folder())
    return tempfile.tempdir


_kept = contextlib.ExitStack()
