"""Promotes the tried plan of one environment to the next, or says everything that forbids it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.engines.render import render_plan
from seatrial.locks.changes import changes, count_generation
from seatrial.locks.guard_rails import limit_problems
from seatrial.locks.lock_file import locked_document, read_edited_plan, read_locked_plan
from seatrial.locks.pins import provenance_problems
from seatrial.operations.promotion.evidence import (
    PromotionStep,
    evidence_problems,
    most_concurrency,
    no_level_problem,
    provenance_of,
    slo_problems,
    workload_problems,
)
from seatrial.planner.promote import TriedCopy, promoted_plan
from seatrial_base.errors import PlanError, RenderError, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    from seatrial.documents.plan import Plan
    from seatrial.engines.rendered import RenderedConfig
    from seatrial.operations.promotion.evidence import TrialEvidence
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding
    from seatrial_load.documents.result import TrialResult


@dataclass(frozen=True, slots=True)
class PromotedLock:
    """A plan that may be locked.

    Attributes:
        loaded: The spec in the environment to come.
        plan: Its plan, with provenance.
        lines: What changes against the plan that is locked there; one line when nothing is locked yet.
    """

    loaded: LoadedSpec
    plan: Plan
    lines: tuple[str, ...]


def source_of(target: EnvironmentSpec, given: str | None) -> str:
    """Return the environment that plans are promoted from.

    Args:
        target: The environment to come.
        given: What was asked for; `None` takes `promotion.source`.

    Raises:
        SpecError: SEA470 when there is none, or it is another one than the environments' order says.
    """
    ordered = target.promotion.source
    source = given or ordered
    if source is None:
        message = f"{target.name} has no promotion.source"
        raise _out_of_order(target, message, "give --from, or set promotion.source in its file")
    if source == target.name:
        raise _out_of_order(target, f"{source} is the same environment", "name the environment before it")
    if ordered is not None and source != ordered:
        message = f"{target.name} takes plans from {ordered}, not from {source}"
        raise _out_of_order(target, message, f"promote to {ordered} first")
    return source


def _out_of_order(target: EnvironmentSpec, message: str, hint: str) -> SpecError:
    return SpecError.of("SEA470", message, where=target.name, field="promotion.source", hint=hint)


def check_order(source: EnvironmentSpec, target: EnvironmentSpec, order: tuple[EnvironmentSpec, ...]) -> None:
    """Refuse to promote to an environment that comes before its source.

    Args:
        source: Where the plan was tried.
        target: The environment to come.
        order: Every environment, each after its source.

    Raises:
        SpecError: SEA470.
    """
    sources = {each.name: each.promotion.source for each in order}
    before = sources.get(source.name)
    while before is not None:
        if before == target.name:
            message = f"{target.name} comes before {source.name}"
            raise _out_of_order(target, message, "promote in the order of the environments")
        before = sources.get(before)


def promote_plan(
    source: LoadedSpec, target: LoadedSpec, evidence: TrialEvidence, *, now: datetime, accept_simulated: bool = False
) -> PromotedLock:
    """Return the lock of an environment from the tried plan of the one before it.

    Args:
        source: The spec in the environment where the plan was tried.
        target: The spec in the environment to come.
        evidence: What is known of the trial.
        now: The time, to tell the trial's age.
        accept_simulated: Take a result of simulated hardware.

    Raises:
        SpecError: With everything that forbids it: SEA401 to SEA403 and SEA411 of the source's lock, SEA471 to SEA477,
            and each guard rail and limit of the target that the plan breaks.
        PlanError, RenderError: When the target's spec can't be planned or rendered at all.
    """
    tried, problems = _tried_plan(source)
    if tried is None:
        raise SpecError(problems)
    promotion = PromotionStep(source, target, tried)
    problems += evidence_problems(promotion, evidence, now=now, accept_simulated=accept_simulated)
    plan = None
    if evidence.result is not None:
        plan, found = _planned(promotion, evidence, evidence.result)
        problems += found
    if problems or plan is None:
        raise SpecError(dict.fromkeys(problems))
    before = locked_document(target)
    plan, another = count_generation(before, plan)
    lines = (*another, *changes(before, plan)) if before is not None else ("no plan is locked yet",)
    return PromotedLock(target, plan, lines)


def _tried_plan(source: LoadedSpec) -> tuple[Plan | None, list[Finding]]:
    """Return the locked plan with what is wrong with it; `None` when it can't be read."""
    try:
        return read_locked_plan(source), []
    except SpecError as error:
        problems = list(error.problems)
    try:
        return read_edited_plan(source)[0], problems
    except SpecError:
        return None, problems


def _planned(
    promotion: PromotionStep, evidence: TrialEvidence, result: TrialResult
) -> tuple[Plan | None, tuple[Finding, ...]]:
    """Return the plan of the target with what speaks against it; `None` when there is no plan at all."""
    workload = tuple(workload_problems(promotion, result))
    if workload:
        return None, workload
    most = most_concurrency(promotion, result)
    if most is None:
        return None, (no_level_problem(promotion, result),)
    tried = TriedCopy(promotion.plan, promotion.source.environment.region, most)
    try:
        plan = promoted_plan(tried, promotion.target, provenance_of(promotion, evidence, result))
        served = tuple(served_problems(promotion, plan))
    except (SpecError, PlanError, RenderError) as error:
        return None, error.problems
    hint = "relax the limit, or try a plan that keeps it"
    limits = (replace(each, hint=hint) for each in limit_problems(plan, promotion.target))
    rest = (*limits, *provenance_problems(plan, promotion.target))
    return plan, (*served, *slo_problems(promotion, plan, result), *rest)


_MODEL = ("hub_id", "revision", "jumpstart_id", "trust_remote_code")
_LONGEST_SHOWN = 80


def served_problems(promotion: PromotionStep, plan: Plan) -> Iterator[Finding]:
    """Yield everything in which the promoted plan's container would not be the tried one.

    Weights may lie in a bucket of each environment's own: where they lie is not compared.

    Args:
        promotion: The step.
        plan: The promoted plan.

    Raises:
        RenderError: When one of the plans can't be rendered.
    """
    tried = _told(promotion.source, render_plan(promotion.source, promotion.plan))
    here = _told(promotion.target, render_plan(promotion.target, plan))
    names = promotion.source.environment.name, promotion.target.environment.name
    for name in sorted({*tried, *here}):
        before, after = tried.get(name), here.get(name)
        if before != after:
            message = f"{name}: {_shown(before)} in {names[0]}, {_shown(after)} in {names[1]}"
            hint = f"give both environments the same model and serving options, and try them in {names[0]}"
            yield promotion.problem("SEA476", message, hint)


def _told(loaded: LoadedSpec, config: RenderedConfig) -> Mapping[str, str]:
    """Return everything that a container reads, by name; texts without comments and without the weights' place."""
    model, weights = loaded.endpoint.model, loaded.endpoint.model.s3_uri
    told = {f"model.{name}": f"{getattr(model, name)}" for name in _MODEL}
    told |= {"engine": config.engine, "payload schema": config.payload_schema}
    told |= {f"environment variable {name}": value for name, value in config.container_env.items()}
    told |= {f"environment variable {name}": "from Secrets Manager" for name in config.secret_env}
    for file, text in config.files.items():
        told |= {f"{file}: {name}": line for name, line in _lines(file, text)}
    return {name: value.replace(weights, "WEIGHTS") if weights else value for name, value in told.items()}


def _lines(file: str, text: str) -> Iterator[tuple[str, str]]:
    """Yield the options of a properties file; of any other file, its text as a whole."""
    if not file.endswith(".properties"):
        yield "text", text
        return
    for line in text.splitlines():
        if line.strip() and not line.lstrip().startswith("#"):
            name, _, value = line.partition("=")
            yield name, value


def _shown(value: str | None) -> str:
    if value is None:
        return "absent"
    return value if len(value) <= _LONGEST_SHOWN else f"{value[:_LONGEST_SHOWN]}…"
