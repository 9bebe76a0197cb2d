"""A repository of templates, and what its CI does with them: the action's steps, the hooks of pre-commit, the plugin.

The steps are those of action.yml, each run in bash with the environment that it declares. What stands in for GitHub is
small: expressions that only name a value, and a `python` that does not fetch packages but is the one of the tests.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from probes import cli
from probes.commands import COMMANDS
from tests.probes.outer_pytest import ROOT, run_pytest

if shutil.which("bash") is None or shutil.which("git") is None:
    pytest.skip("bash and git are not installed", allow_module_level=True)

ACTION: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
HOOKS: list[dict[str, Any]] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
HEALTHY = "templates/it's $(touch pwned); healthy.jinja"
BROKEN = "templates/broken.jinja"
CHATML = (
    "{%- for message in messages %}\n"
    "{{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>\\n' }}\n"
    "{%- endfor %}\n"
    "{%- if add_generation_prompt %}\n"
    "{{- '<|im_start|>assistant\\n' }}\n"
    "{%- endif %}\n"
)
ESCAPING = CHATML.replace("message.content", "message.content | replace('<', '&lt;')")
LOCK = ROOT / ".ci" / "requirements.txt"
DOCUMENT = (ROOT / "docs" / "ci.md").read_text(encoding="utf-8")
ALTERED = "CT106 content-altered"
EXPRESSION = re.compile(r"\$\{\{ (\w+)\.([\w.-]+) \}\}")


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two templates with their snapshots, committed; then one of them is edited, and escapes texts."""
    folder = tmp_path_factory.mktemp("repository")
    (folder / "templates").mkdir()
    for name in (HEALTHY, BROKEN):
        (folder / name).write_text(CHATML, encoding="utf-8")
    assert cli.main(["snapshot", str(folder / "templates")]) == 0
    for command in (["init", "-q"], ["add", "."], ["commit", "-q", "-m", "Templates"]):
        subprocess.run(["git", "-c", "user.name=A", "-c", "user.email=a@b.c", *command], cwd=folder, check=True)
    (folder / BROKEN).write_text(ESCAPING, encoding="utf-8")
    return folder


@dataclass(frozen=True)
class Ran:
    code: int
    output: str
    outputs: dict[str, str]
    installed: str

    @property
    def annotations(self) -> list[str]:
        """Those that fail a check."""
        return [line for line in self.output.splitlines() if line.startswith("::error ")]


class Runner:
    """Runs the action as GitHub does, but for `uses:` steps, which are other people's."""

    def __init__(self, repository: Path, temp: Path) -> None:
        self.repository, self.temp = repository, temp
        self.bin = temp / "bin"
        self.bin.mkdir()
        python = self.bin / "python"
        python.write_text(
            "#!/usr/bin/env bash\n"
            f'if [ "$2" = pip ]; then printf "%s\\n" "$*" >> {temp / "pip"}; exit; fi\n'
            f'exec {sys.executable} "$@"\n',
            encoding="utf-8",
        )
        python.chmod(0o755)

    def run(self, **inputs: str) -> Ran:
        known = {name: given["default"] for name, given in ACTION["inputs"].items()}
        given = {name.replace("_", "-"): value for name, value in inputs.items()}
        assert given.keys() <= known.keys()
        contexts: dict[str, dict[str, str]] = {
            "inputs": known | given,
            "github": {"action_path": str(ROOT)},
            "runner": {"temp": str(self.temp)},
            "steps": {},
        }
        code, output = 0, ""
        for step in ACTION["runs"]["steps"]:
            if "uses" in step:
                continue
            assert step["shell"] == "bash"
            code, text, outputs = self.step(step, contexts)
            output += text
            contexts["steps"] |= {f"{step.get('id')}.outputs.{name}": value for name, value in outputs.items()}
            if code:
                break
        outputs = {name: filled(one["value"], contexts) for name, one in ACTION["outputs"].items()}
        return Ran(code, output, outputs, (self.temp / "pip").read_text(encoding="utf-8"))

    def step(self, step: dict[str, Any], contexts: dict[str, dict[str, str]]) -> tuple[int, str, dict[str, str]]:
        script, written = self.temp / "step.sh", self.temp / "output"
        script.write_text(step["run"], encoding="utf-8")
        written.write_text("", encoding="utf-8")
        environment = {
            "PATH": f"{self.bin}:{os.environ['PATH']}",
            "HOME": str(self.temp),
            "GITHUB_OUTPUT": str(written),
            **{name: filled(value, contexts) for name, value in step["env"].items()},
        }
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(script)],
            cwd=self.repository,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        lines = written.read_text(encoding="utf-8").splitlines()
        return done.returncode, done.stdout, dict(line.split("=", 1) for line in lines)


def filled(text: str, contexts: dict[str, dict[str, str]]) -> str:
    return EXPRESSION.sub(lambda found: contexts[found[1]][found[2]], text)


@pytest.fixture
def runner(repository: Path, tmp_path: Path) -> Runner:
    return Runner(repository, tmp_path)


# The action


def test_no_input_is_a_part_of_a_script() -> None:
    steps = [step for step in ACTION["runs"]["steps"] if "run" in step]
    assert steps
    for step in steps:
        assert "${{" not in step["run"]
        for value in step["env"].values():
            assert "${{" not in EXPRESSION.sub("", value)


def test_every_input_is_used() -> None:
    used = {name for context, name in EXPRESSION.findall(json.dumps(ACTION["runs"])) if context == "inputs"}
    assert used == ACTION["inputs"].keys()


def test_a_healthy_template_passes_whatever_its_name(runner: Runner) -> None:
    ran = runner.run(templates=f"{HEALTHY}\n", max_examples="5")
    assert (ran.code, ran.annotations) == (0, []), ran.output
    packages, ours = ran.installed.splitlines()
    assert f" --only-binary :all: --require-hashes --requirement {LOCK}" in packages
    assert ours.endswith(f" --no-index --no-build-isolation {ROOT}")
    assert all(" --no-deps " in line for line in (packages, ours))
    assert [line for line in ran.output.splitlines() if line.startswith("jinjarun ")] == [
        "jinjarun lint",
        "jinjarun snapshot",
        "jinjarun fuzz",
    ]
    assert not (runner.repository / "pwned").exists()


def test_what_the_action_uses_is_pinned() -> None:
    """Actions by their commit; packages by hash, every one that this package or its build needs."""
    for step in ACTION["runs"]["steps"]:
        assert "uses" not in step or re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", step["uses"])
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = [Requirement(one) for one in project["project"]["dependencies"] + project["build-system"]["requires"]]
    locked = re.sub(r" \\\n +", " ", LOCK.read_text(encoding="utf-8")).splitlines()
    found = {}
    for line in locked[1:]:
        requirement, *hashes = line.split(" --hash=")
        assert hashes
        assert all(re.fullmatch("sha256:[0-9a-f]{64}", one) for one in hashes)
        name, _, rest = requirement.partition("==")
        found[canonicalize_name(name)] = rest.partition(";")[0].strip()
    for one in needed:
        assert one.specifier.contains(found[canonicalize_name(one.name)]), one


@pytest.mark.parametrize("name", ["--out=x.jinja", "-.jinja", "--check", "-o\n::error::.jinja"])
def test_names_that_look_like_options_are_names(name: str, runner: Runner) -> None:
    """With the action, and with the entries of the hooks, which end with `--`."""
    (runner.repository / name).write_text(CHATML, encoding="utf-8")
    try:
        if "\n" not in name:
            ran = runner.run(templates=name, checks="snapshot")
            assert (ran.code, len(ran.annotations)) == (2, 1), ran.output
            assert ran.annotations[0].endswith(f"::{name}.snapshot.json is missing")
        for hook in HOOKS:
            entry = [word for word in [*local(hook)["entry"].split(), *local(hook)["args"]] if word != sys.executable]
            assert entry[-1] == "--"
            done = subprocess.run(
                [sys.executable, *entry, name], cwd=runner.repository, capture_output=True, text=True, check=False
            )
            assert done.returncode == (2 if "snapshot" in hook["id"] else 0), done.stdout + done.stderr
            assert "Traceback" not in done.stderr
            assert not any(line.lstrip().startswith("::") for line in (done.stdout + done.stderr).splitlines())
        assert not (runner.repository / "x.jinja").exists()
    finally:
        (runner.repository / name).unlink()


def test_every_command_takes_names_after_two_dashes(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(repository)
    name = "--json"
    (repository / name).write_text(CHATML, encoding="utf-8")
    try:
        for command in COMMANDS:
            argument = {"rules": "CT106", "conversations": "user"}.get(command, name)
            more = {"serve": ["--port", "0", "--host", "no such host"], "parse": [f"--response={name}"]}
            codes = {2} if command == "serve" else {0, 1}
            assert cli.main([command, *more.get(command, []), "--", argument]) in codes
        assert cli.main(["compare", "--", name, name]) == 0
    finally:
        (repository / name).unlink()


def test_a_broken_template_fails_and_each_check_tells_where(runner: Runner) -> None:
    ran = runner.run(templates=f"{HEALTHY}\n{BROKEN}", max_examples="5")
    assert ran.code == 1, ran.output
    checks = re.split(r"^jinjarun (?:lint|snapshot|fuzz)\n", ran.output, flags=re.MULTILINE)[1:]
    for check, title in zip(checks, (ALTERED, "snapshot differs", ALTERED), strict=True):
        assert f"::error file={BROKEN},title={title}" in check
    assert f"::error file={BROKEN},title={ALTERED},line=2::" in checks[-1]
    assert all(line.startswith(f"::error file={BROKEN},") for line in ran.annotations)


def test_sarif_goes_into_files(runner: Runner) -> None:
    ran = runner.run(templates=BROKEN, checks="snapshot\n lint", format="sarif", reports="out put")
    assert (ran.code, ran.outputs, ran.annotations) == (1, {"reports": "out put"}, []), ran.output
    found = {}
    for file in sorted((runner.repository / "out put").iterdir()):
        (log,) = json.loads(file.read_text(encoding="utf-8"))["runs"]
        found[file.name] = [result["ruleId"] for result in log["results"] if result["level"] == "error"]
    assert {name: set(codes) for name, codes in found.items()} == {
        "lint.sarif": {"CT106"},
        "snapshot.sarif": {"snapshot"},
    }


def test_a_template_without_a_snapshot_fails_and_gets_none(runner: Runner) -> None:
    new = runner.repository / "new.jinja"
    new.write_text(CHATML, encoding="utf-8")
    ran = runner.run(templates="new.jinja", checks="snapshot")
    assert (ran.code, len(ran.annotations)) == (2, 1), ran.output
    assert ran.annotations[0].startswith("::error file=new.jinja,title=no snapshot::")
    assert not (runner.repository / "new.jinja.snapshot.json").exists()


@pytest.mark.parametrize("checks", ["", "lint; touch pwned", "*"])
def test_checks_that_there_are_not(checks: str, runner: Runner) -> None:
    ran = runner.run(templates=HEALTHY, checks=checks)
    assert ran.code == 2
    assert ran.annotations == ["::error title=jinjarun::checks names lint, snapshot and fuzz, or some of them"]
    assert not (runner.repository / "pwned").exists()


# The hooks


def test_the_hooks_get_the_templates_of_a_commit(repository: Path, tmp_path: Path) -> None:
    """pre-commit itself, with the hooks as they stand there but for the environment that it would make for them."""
    config = tmp_path / "config.yaml"
    config.write_text(yaml.safe_dump({"repos": [{"repo": "local", "hooks": [*map(local, HOOKS)]}]}), encoding="utf-8")

    def run(*files: str) -> tuple[int, dict[str, str], str]:
        done = subprocess.run(
            [sys.executable, "-m", "pre_commit", "run", "--config", str(config), "--color=never", "--files", *files],
            cwd=repository,
            env={**os.environ, "PRE_COMMIT_HOME": str(tmp_path / "home")},
            capture_output=True,
            text=True,
            check=False,
        )
        said = dict(re.findall(r"^(\S.*?)\.{3,}.*?(\w+)$", done.stdout, re.MULTILINE))
        return done.returncode, said, done.stdout + done.stderr

    names = [hook["name"] for hook in HOOKS]
    code, said, output = run(HEALTHY)
    assert (code, said) == (0, dict.fromkeys(names, "Passed")), output
    code, said, output = run(BROKEN)
    assert (code, said) == (1, dict.fromkeys(names, "Failed")), output
    assert f"error {ALTERED}: " in output
    assert f"{BROKEN}: differs from {BROKEN}.snapshot.json" in output
    assert "  error CT106 texts-unaltered: " in output
    code, said, output = run(f"{BROKEN}.snapshot.json")
    assert (code, said) == (0, dict.fromkeys(names, "Skipped")), output


def local(hook: dict[str, Any]) -> dict[str, Any]:
    """The hook with the jinjarun of the tests, and a shorter search, as its users may want one."""
    program, _, options = hook["entry"].partition(" ")
    assert (program, hook["language"]) == ("jinjarun", "python")
    args = ["--max-examples=5", "--law=texts-unaltered", "--"] if options.startswith("fuzz") else hook["args"]
    return {**hook, "language": "system", "entry": f"{sys.executable} -m probes.cli {options}", "args": args}


# The plugin


def test_the_plugin_fails_for_the_broken_template(repository: Path) -> None:
    laws = ["texts-unaltered", "turns-closed"]
    options = [f"--chat-template-law={law}" for law in laws]
    done = run_pytest(repository, "--chat-template=templates", "--chat-template-examples=5", "-v", *options)
    assert done.returncode == 1, done.stdout + done.stderr
    said = re.findall(r"^(\S.*)::(\S+) (PASSED|FAILED) ", done.stdout, re.MULTILINE)
    assert said == [
        (BROKEN, "texts-unaltered", "FAILED"),
        (BROKEN, "turns-closed", "PASSED"),
        (HEALTHY, "texts-unaltered", "PASSED"),
        (HEALTHY, "turns-closed", "PASSED"),
    ]
    assert "(line 2 of the template)" in re.sub(r"\s+", " ", done.stdout)


# The document


def test_the_document_shows_what_there_is() -> None:
    shown = [yaml.safe_load(block) for block in re.findall(r"^```yaml\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)]
    steps = [step for one in shown if "jobs" in one for step in one["jobs"]["templates"]["steps"]]
    used = [step["with"] for step in steps if "/jinjarun@" in step["uses"]]
    assert len(used) == 2
    assert all(given.keys() <= ACTION["inputs"].keys() for given in used)
    assert [hook["id"] for hook in shown[-1]["repos"][0]["hooks"]] == [hook["id"] for hook in HOOKS]
    table = dict(re.findall(r"^\| `([\w-]+)` \| `(.+?)` \|", DOCUMENT, re.MULTILINE))
    assert table == {name: given["default"] for name, given in ACTION["inputs"].items()}
