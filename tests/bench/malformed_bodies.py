"""Malformed bodies against `jinjarun serve`: `python -m tests.bench.malformed_bodies [--count 10000] [--family NAME]`.

Every answer must have the status that the path itself gives (`LlamaServer`, 400 for what is no JSON) and llama-server's
error body. Prints the statuses, the slowest answer, and the memory of the server and of its workers on the way (Linux).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from urllib.parse import urlsplit

from hypothesis import HealthCheck, Phase, given, settings

from jinjarun.errors import JinjarunError
from jinjarun.limits import Limits
from jinjarun.serving import server_json
from jinjarun.serving.llama_server import LlamaServer
from probes.rendering.paths import Setting, llama_server
from tests.malformed import malformed_bodies
from tests.probes.running import Reply, Running, of_family

REPORT_SECONDS = 20.0
ALL = list(HealthCheck)


def expected_status(server: LlamaServer, body: bytes) -> int:
    """The status that llama-server gives, by the path that the server is built on."""
    try:
        value = server_json.parse(body.decode(), Limits())
    except JinjarunError as error:
        return error.status
    except ValueError:
        return 400
    try:
        server.apply(value, now=0)
    except JinjarunError as error:
        return error.status
    return 200


def check(server: LlamaServer, body: bytes, reply: Reply) -> None:
    """Raises AssertionError where an answer is not llama-server's."""
    assert reply.status == expected_status(server, body), (body[:500], reply)
    assert reply.headers["content-type"] == "application/json; charset=utf-8"
    answer = reply.json
    if reply.status == 200:
        assert list(answer) == ["prompt"]
        return
    assert list(answer) == ["error"], answer
    assert list(answer["error"]) == ["code", "message", "type"]
    assert answer["error"]["code"] == reply.status
    assert "Traceback" not in answer["error"]["message"]


def run(there: Running, process: int, setting: Setting, count: int) -> None:
    server = llama_server(setting)
    statuses: Counter[int] = Counter()
    slowest, since = 0.0, time.monotonic()

    @settings(max_examples=count, phases=[Phase.generate], database=None, deadline=None, suppress_health_check=ALL)
    @given(malformed_bodies())
    def ask(body: bytes) -> None:
        nonlocal slowest, since
        start = time.monotonic()
        reply = there.post("/apply-template", body)
        slowest = max(slowest, time.monotonic() - start)
        check(server, body, reply)
        statuses[reply.status] += 1
        if time.monotonic() - since > REPORT_SECONDS:
            since = time.monotonic()
            print(f"{statuses.total():6} bodies, {memory(process)}", flush=True)

    print(f"{0:6} bodies, {memory(process)}", flush=True)
    ask()
    print(f"{statuses.total():6} bodies, {memory(process)}")
    print(f"statuses {json.dumps(dict(sorted(statuses.items())))}, slowest {slowest:.2f} s")


def memory(server: int) -> str:
    """Resident memory of the server and of its workers."""
    processes = [path for path in Path("/proc").glob("[0-9]*") if _status(path, "PPid") == server]
    workers = ", ".join(f"{one:.0f}" for one in sorted(map(_resident, processes)))
    return f"server {_resident(Path('/proc') / str(server)):.0f} MB, workers {workers} MB"


def _status(process: Path, field: str) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) for line in lines if line.startswith(f"{field}:")), 0)


def _resident(process: Path) -> float:
    return _status(process, "VmRSS") * 1024 / 1e6


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.bench.malformed_bodies", description=__doc__)
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--family", default="qwen3")
    args = parser.parse_args()
    command = [sys.executable, "-m", "probes.cli", "serve", f"family:{args.family}", "--port", "0", "--now", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as serving:
        try:
            assert serving.stderr is not None
            url = urlsplit(serving.stderr.readline().split()[1])
            run(Running(url.hostname or "", url.port or 0), serving.pid, of_family(args.family), args.count)
        finally:
            serving.terminate()
    return 0


if __name__ == "__main__":
    sys.exit(main())
