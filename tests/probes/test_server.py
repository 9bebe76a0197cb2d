"""`jinjarun serve` over real HTTP: llama-server's endpoints, its errors, and what a stranger can cost."""

from __future__ import annotations

import json
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from jinjarun.serving.caps import chat_template_caps
from probes.chats.named import CHATS
from probes.rendering.paths import Setting, llama_server
from tests.bench.malformed_bodies import check
from tests.conformance.golden import NO_SHARED, SHARED, have_shared, template_source
from tests.families import family
from tests.malformed import malformed_bodies
from tests.probes.running import Running, of_family, running

DAY = 1790985600
QUESTION: dict[str, Any] = {"messages": [{"role": "user", "content": "Reverse a string."}]}
HOSTILE = {
    "loops": "{% for i in range(99999) %}{% for j in range(99999) %}{{ i * j }}{% endfor %}{% endfor %}",
    "power": "{{ 9 ** (9 ** 9) }}",
    "output": "{% for i in range(99999) %}{{ 'x' * 4000 }}{% endfor %}",
    "depth": "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "recursion": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
}


@pytest.fixture(scope="module")
def there() -> Iterator[Running]:
    with running(of_family("qwen3"), name="qwen3") as found:
        yield found


def test_health(there: Running) -> None:
    for path in ("/health", "/v1/health"):
        reply = there.ask("GET", path)
        assert (reply.status, reply.json) == (200, {"status": "ok"})


def test_props(there: Running) -> None:
    props = there.ask("GET", "/props").json
    qwen3 = family("qwen3")
    assert props["chat_template"] == qwen3.source
    assert props["chat_template_caps"] == chat_template_caps(qwen3.source).to_dict()
    assert {key: props[key] for key in ("bos_token", "eos_token")} == qwen3.tokens
    assert props["build_info"].startswith("b11434-")
    assert props["modalities"] == {"vision": False, "video": False, "audio": False}
    assert props["model_alias"] == "qwen3"
    assert "chat_template_tool_use" not in props


def test_apply_template(there: Running) -> None:
    reply = there.post("/apply-template", QUESTION)
    assert reply.status == 200
    assert reply.json == {"prompt": "<|im_start|>user\nReverse a string.<|im_end|>\n<|im_start|>assistant\n"}


def test_a_template_for_tools() -> None:
    setting = Setting({"default": "plain", "tool_use": "{{ tools | length }} tools"})
    tool = {"type": "function", "function": {"name": "look"}}
    with running(setting) as there:
        assert there.ask("GET", "/props").json["chat_template_tool_use"] == setting.templates["tool_use"]
        assert there.post("/apply-template", QUESTION).json == {"prompt": "plain"}
        assert there.post("/apply-template", QUESTION | {"tools": [tool]}).json == {"prompt": "1 tools"}


def test_a_compiled_format() -> None:
    with running(Setting({}, format="phi3")) as there:
        assert there.ask("GET", "/props").json["chat_template"] == "phi3"
        assert there.post("/apply-template", QUESTION).json == {
            "prompt": "<|user|>\nReverse a string.<|end|>\n<|assistant|>\n"
        }
        assert there.post("/apply-template", QUESTION | {"tools": [{}]}).status == 500


def recorded() -> list[tuple[str, list[dict[str, Any]]]]:
    """The requests of the seed, by template; needs ../shared."""
    if not have_shared():
        return []
    answers = json.loads((SHARED / "golden" / "seed.json").read_text(encoding="utf-8"))["answers"]
    by_source = sorted(answers, key=lambda answer: answer["template"])
    return [(name, list(group)) for name, group in groupby(by_source, key=lambda answer: answer["template"])]


@pytest.mark.skipif(not have_shared(), reason=NO_SHARED)
@pytest.mark.parametrize(("name", "answers"), recorded(), ids=[name for name, _ in recorded()])
def test_the_lessons_commands_get_the_lessons_answers(name: str, answers: list[dict[str, Any]]) -> None:
    source = answers[0]["template_source"] or template_source(name)
    tokens = {"bos_token": "<|endoftext|>", "eos_token": "<|endoftext|>"}
    with running(Setting({"default": source}, **tokens, now=DAY)) as there:
        assert there.ask("GET", "/props").json["chat_template_caps"] == answers[0]["caps"]
        for answer in answers:
            assert curl(there, answer["body"]) == {"prompt": answer["prompt"]}, answer["example"]


def curl(there: Running, body: Any) -> Any:
    """As the lesson asks; without curl, as it would have."""
    if not (command := shutil.which("curl")):
        return there.ask("POST /apply-template", body, **{"Content-Type": "application/json"}).json
    sent = ["-H", "Content-Type: application/json", "-d", json.dumps(body)]
    done = subprocess.run([command, "-s", f"{there.url}/apply-template", *sent], capture_output=True, check=True)
    return json.loads(done.stdout)


@pytest.mark.parametrize(
    ("asked", "body", "status", "kind"),
    [
        ("POST /apply-template", b"", 400, "invalid_request_error"),
        ("POST /apply-template", b"{", 400, "invalid_request_error"),
        ("POST /apply-template", b'"\xff"', 400, "invalid_request_error"),
        ("POST /apply-template", b"[" * 100_000, 400, "invalid_request_error"),
        ("POST /apply-template", b"{}", 400, "invalid_request_error"),
        ("POST /apply-template", b'{"messages": [{"content": "x"}]}', 500, "server_error"),
        ("POST /probe", b"[]", 400, "invalid_request_error"),
        ("POST /probe", b'{"template": 1}', 400, "invalid_request_error"),
        ("POST /explain", b'{"path": "vllm", "request": {}}', 200, None),
        ("GET /apply-template", None, 404, "not_found_error"),
        ("GET /nothing", None, 404, "not_found_error"),
        ("POST /v1/chat/completions", b"{}", 501, "not_supported_error"),
    ],
)
def test_errors_have_the_shape_of_llama_server(
    there: Running, asked: str, body: bytes | None, status: int, kind: str | None
) -> None:
    reply = there.ask(*asked.split(), body)
    assert reply.status == status
    if kind is not None:
        assert list(reply.json) == ["error"]
        error = reply.json["error"]
        assert (error["code"], error["type"]) == (status, kind)
        assert isinstance(error["message"], str)


def test_malformed_bodies(there: Running) -> None:
    server = llama_server(of_family("qwen3"))

    @settings(max_examples=200, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(malformed_bodies(large=False))
    def ask(body: bytes) -> None:
        check(server, body, there.post("/apply-template", body))

    ask()


def test_a_body_that_is_too_large() -> None:
    with running(Setting({"default": "x"}), body_bytes=1000) as there:
        reply = there.post("/apply-template", {"messages": [], "more": "x" * 1000})
        assert (reply.status, reply.json["error"]["code"]) == (413, 413)
        with socket.create_connection((there.host, there.port)) as client:
            client.sendall(
                b"POST /probe HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            client.sendall(b"7d0\r\n" + b"x" * 2000 + b"\r\n")
            assert client.recv(1000).startswith(b"HTTP/1.1 413")


def test_too_many_requests_get_503() -> None:
    slow = HOSTILE["loops"]
    with running(Setting({"default": "x"}), under_way=3) as there, ThreadPoolExecutor(12) as clients:
        replies = list(
            clients.map(lambda _: there.post("/explain", {"template": slow, "request": QUESTION}), range(24))
        )
        statuses = {reply.status for reply in replies}
        assert statuses == {200, 503}
        refused = next(reply for reply in replies if reply.status == 503)
        assert refused.json["error"]["type"] == "unavailable_error"
        assert refused.headers["retry-after"] == "1"
        assert there.post("/apply-template", QUESTION).status == 200


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_template_costs_an_error(there: Running, name: str) -> None:
    body = {"template": HOSTILE[name], "request": QUESTION, "path": "transformers:raw"}
    assert there.post("/explain", body).json["answer"]["error"]["type"] == "LimitExceeded"
    assert there.post("/apply-template", QUESTION).status == 200


def test_a_hostile_template_is_probed(there: Running) -> None:
    assert there.post("/probe", {"template": HOSTILE["power"]}).json["status"] == "partial"
    assert there.post("/probe", {"template": HOSTILE["depth"]}).json["status"] == "not_evaluated"


def test_probe(there: Running) -> None:
    ours = there.post("/probe", b"").json
    assert ours["template"]["bytes"] == len(family("qwen3").source.encode())
    other = there.post("/probe", {"template": family("flat").source}).json
    assert other["template"]["sha256"] != ours["template"]["sha256"]
    assert there.post("/probe", {"template": "{% if %}"}).json["status"] == "invalid"


def test_explain_shows_where_the_prompt_comes_from_and_the_next_one(there: Running) -> None:
    answer = there.post("/explain", {"request": QUESTION}).json
    first, following = answer["answer"], answer["next"]
    assert "".join(span["text"] for span in first["spans"]) == first["text"]
    assert "messages[0].content" in {span["origin"] for span in first["spans"]}
    assert following["text"].startswith(first["text"])
    assert following["shared"] == len(first["text"])


def test_the_page_asks_nobody_else(there: Running) -> None:
    reply = there.ask("GET", "/")
    assert reply.status == 200
    assert reply.headers["content-type"].startswith("text/html")
    assert "default-src 'none'" in reply.headers["content-security-policy"]
    text = reply.body.decode()
    assert "http://" not in text.replace(json.dumps(family("qwen3").source), "")
    assert "https://" not in text


def test_a_page_of_a_template_that_ends_scripts() -> None:
    with running(Setting({"default": "</script><script>alert(1)</script>"})) as there:
        assert b"<script>alert" not in there.ask("GET", "/").body


def test_the_openai_client(there: Running) -> None:
    """A client made for OpenAI's API, with its types, as it is."""
    openai = pytest.importorskip("openai", reason="needs the openai package")
    pytest.importorskip("httpx", reason="needs httpx")
    from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolParam  # noqa: PLC0415

    messages: list[ChatCompletionMessageParam] = [
        {"role": "developer", "content": "Be brief."},
        {"role": "user", "content": [{"type": "text", "text": "What is in pom.xml?"}]},
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "1", "type": "function", "function": {"name": "look", "arguments": '{"at": "pom.xml"}'}}
            ],
        },
        {"role": "tool", "tool_call_id": "1", "content": "<project/>"},
    ]
    tools: list[ChatCompletionToolParam] = [{"type": "function", "function": {"name": "look", "parameters": {}}}]
    with openai.OpenAI(base_url=there.url, api_key="none", max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["qwen3"]
        answer = client.post("/apply-template", body={"messages": messages, "tools": tools}, cast_to=object)
        assert '{"name": "look", "arguments": {"at": "pom.xml"}}' in answer["prompt"]
        with pytest.raises(openai.BadRequestError) as caught:
            client.post("/apply-template", body={"messages": "none"}, cast_to=object)
        assert caught.value.type == "invalid_request_error"
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="qwen3", messages=messages)


def test_httpx(there: Running) -> None:
    httpx = pytest.importorskip("httpx", reason="needs httpx")
    with httpx.Client(base_url=there.url, trust_env=False) as client:
        assert client.get("/props").raise_for_status().json()["bos_token"] == family("qwen3").tokens["bos_token"]
        assert client.post("/apply-template", json=QUESTION).json()["prompt"].endswith("assistant\n")


def test_serve_from_the_command_line_and_back() -> None:
    """A server of ours, asked by `probe` and `render`: it is equal."""
    command = [sys.executable, "-m", "probes.cli"]
    serving = subprocess.Popen(
        [*command, "serve", "family:qwen3", "--port", "0"], stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    )
    try:
        assert serving.stderr is not None
        url = serving.stderr.readline().split()[1]
        done = subprocess.run([*command, "probe", url, "--json"], capture_output=True, text=True, check=False)
        report = json.loads(done.stdout)
        assert (report["server"]["equal"], report["server"]["differences"]) == (True, [])
        assert report["server"]["asked"] == len(CHATS)
        rendered = subprocess.run([*command, "render", url], capture_output=True, text=True, check=False)
        assert (rendered.returncode, rendered.stderr) == (0, "")
        assert rendered.stdout == "<|im_start|>user\nReverse a string.<|im_end|>\n<|im_start|>assistant\n"
    finally:
        serving.terminate()
        serving.communicate(timeout=20)


def test_a_template_that_llama_server_would_not_start_with() -> None:
    command = [sys.executable, "-m", "probes.cli", "serve", "-", "--port", "0"]
    done = subprocess.run(command, input="{% if %}", capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "syntax error" in done.stderr
    assert "Traceback" not in done.stderr


def test_an_address_that_is_taken(there: Running) -> None:
    command = [sys.executable, "-m", "probes.cli", "serve", "family:flat", "--port", str(there.port)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "cannot listen" in done.stderr
