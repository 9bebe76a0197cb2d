"""`jinjarun serve`: llama-server's endpoints for a template, without weights."""

from __future__ import annotations

from typing import TYPE_CHECKING

from probes.commands import Command
from probes.commands.llama_server import llama_server_options, served_setting
from probes.commands.options import Usage, clock_option, limit_option, port, token_options, variable_options
from probes.commands.output import CLEAN, complain

if TYPE_CHECKING:
    import argparse

CEILING = 10
"""How many times the usual limits a server may allow."""


def add_options(added: argparse.ArgumentParser) -> None:
    added.add_argument("--host", default="127.0.0.1", metavar="HOST", help="where to listen (default 127.0.0.1)")
    added.add_argument("--port", default=8080, type=port, metavar="PORT", help="default 8080; 0 takes a free one")
    added.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="answer requests to this name, too; else only to localhost and the address",
    )
    llama_server_options(added)
    variable_options(added)
    token_options(added)
    clock_option(added)
    limit_option(added)


def run(args: argparse.Namespace) -> int:
    from ipaddress import ip_address

    from jinjarun.limits import Limits
    from probes.serve import app as server

    for name, value in args.limits:
        most = CEILING * getattr(Limits(), name)
        if value > most:
            raise Usage(f"--limit {name}: a server answers strangers, and allows them {most:,} at the most")
    source, setting = served_setting(args, "llama.cpp")
    bound = server.listen(args.host, args.port)
    with bound:
        application = server.TemplateServer(setting, name=source.name, hosts=[args.host, *args.allow_host])
        host, port = bound.getsockname()[:2]
        where = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        complain(f"{where} answers as llama-server {application.props['build_info']} with {source.name}", CLEAN)
        if not ip_address(host.partition("%")[0]).is_loopback:
            complain("warning: other machines can reach this server, and it asks nobody for a key", CLEAN)
        server.serve(application, bound)
    return CLEAN


COMMAND = Command(
    "answer llama-server's endpoints for a template",
    run,
    add_options,
    json=False,
    bounded=False,
    work=("probes.commands.inputs", "probes.rendering.paths", "probes.serve.app"),
)
