"""`lint` over files and folders: what a target holds, and one isolated call for each where there are several."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from jinjarun.errors import JinjarunError, WorkerError
from jinjarun.isolation import IsolatedExecutor
from jinjarun.limits import Limits
from jinjarun.sources import open_source
from probes.chats.corpus import corpus_folder
from probes.linter.lint import LintResult, lint
from probes.linter.places import files_of
from probes.rendering.renders import PATHS
from probes.report import Evidence, Finding, NotEvaluated, TemplateInfo, TemplateSource
from probes.rules import selected

if TYPE_CHECKING:
    from concurrent.futures import Future

    from jinjarun.sources import Source

NO_TEMPLATE = "PK303"
TIMEOUT_SECONDS = 120.0
MEMORY_BYTES = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Options:
    """What `lint` is asked for; plain JSON, so that it reaches a worker."""

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    preview: bool = False
    variant: str | None = None
    upstream: str | None = None
    paths: tuple[str, ...] = PATHS
    limits: Limits = field(default_factory=Limits)


def lint_target(target: str, options: Options) -> list[LintResult]:
    """The results on the templates of one target; each after the first by its name in the model."""
    source = open_source(target, corpus=corpus_folder())
    if options.variant is not None:
        names = [options.variant]
    else:
        names = sorted(source.chosen, key=lambda name: (name != source.default, name))
    results = [] if names else _without_template(target, source, options)
    for name in names:
        text = source.chosen[name].text if name in source.chosen else source.template(name)
        results.append(
            lint(
                text,
                name=target if name == source.default else f"{target}:{name}",
                select=options.select,
                ignore=options.ignore,
                preview=options.preview,
                tokens=source.tokens,
                files=source,
                upstream=options.upstream,
                paths=options.paths,
                limits=options.limits,
                source=TemplateSource.model_validate(source.report(name)),
                variant=name,
            )
        )
    return results


def _without_template(target: str, source: Source, options: Options) -> list[LintResult]:
    """What the rule for that says of a model in which nothing is a template. Where it finds nothing, or was not asked,
    raises the SourceError that says what is there instead."""
    chosen, _ = selected(options.select, options.ignore, preview=options.preview)
    results = []
    if NO_TEMPLATE in chosen:
        found = TemplateSource.model_validate(source.report())
        results = [lint("", name=target, select=[NO_TEMPLATE], tokens=source.tokens, files=source, source=found)]
    if not any(result.findings for result in results):
        source.template()
    return results


def lint_isolated(target: str, options: dict[str, Any]) -> list[dict[str, Any]]:
    """`lint_target` for a worker: JSON in and out."""
    given: dict[str, Any] = {key: tuple(value) if isinstance(value, list) else value for key, value in options.items()}
    given["limits"] = Limits(**given["limits"])
    return [{**result.to_dict(), "text": result.text} for result in lint_target(target, Options(**given))]


def lint_all(
    targets: Sequence[str],
    options: Options,
    *,
    timeout_seconds: float = TIMEOUT_SECONDS,
    memory_bytes: int = MEMORY_BYTES,
) -> Iterator[tuple[str, list[LintResult] | JinjarunError]]:
    """Each target with its results, or with the error that kept it from being judged; in a worker process each where
    there is more than one and the system has such workers. The bounds are those of a worker."""
    if len(targets) < 2 or sys.platform == "win32":
        for target in targets:
            try:
                yield target, lint_target(target, options)
            except JinjarunError as error:
                yield target, error
        return
    with IsolatedExecutor(
        timeout_seconds=timeout_seconds,
        cpu_seconds=math.ceil(timeout_seconds),
        memory_bytes=memory_bytes,
        initializer=_warm,
        readable=[path for target in targets for path in files_of(target)],
    ) as executor:
        futures = [(target, executor.submit(lint_isolated, target, asdict(options))) for target in targets]
        for target, future in futures:
            yield target, _result(future)


def _warm() -> None:
    """Parses and probes once, so that a worker has imported all before it is locked down."""
    lint("{{ messages[0].content }}")


def _result(future: Future[list[dict[str, Any]]]) -> list[LintResult] | JinjarunError:
    try:
        return [
            LintResult(
                name=answer["template"],
                template=TemplateInfo.model_validate(answer["info"]),
                findings=[Finding.model_validate(row) for row in answer["findings"]],
                not_evaluated=[NotEvaluated.model_validate(row) for row in answer["not_evaluated"]],
                evidence={key: Evidence.model_validate(piece) for key, piece in answer["evidence"].items()},
                text=answer["text"],
            )
            for answer in future.result()
        ]
    except JinjarunError as error:
        return error
    except (ValueError, TypeError, KeyError, AttributeError):
        what = "its worker answered something that no lint answers; not evaluated; please report it with the template"
        return WorkerError(f"lint: {what}", reason="protocol", function="lint")
