"""How a trial is named, and the command that makes the same trial again."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from seatrial_base.units import S_PER_MINUTE
from seatrial_load.trial.steps import JUMPSTART_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial_load.model.request import Load, TrialRequest

ARRIVALS = {
    "closed": "closed loop",
    "poisson": "Poisson arrivals",
    "constant": "constant rate",
    "ramp": "rising rate",
    "replay": "replayed trace",
}


def trial_name(request: TrialRequest) -> str:
    """Name what was tried: an endpoint in its environment, or a server by its address."""
    if request.target.kind == "openai":
        return f"{request.endpoint} at {request.target.endpoint_url}"
    return f"{request.endpoint} in {request.environment}"


def command_of(request: TrialRequest) -> str:
    """Return the command that makes this trial again, with what a spec doesn't say; files are named by their kind."""
    return shlex.join(("seatrial", "bench", *_target(request), *_load(request), "--output", "report"))


def _target(request: TrialRequest) -> Iterator[str]:
    target, work = request.target, request.workload
    if target.kind == "sagemaker":
        yield from ("SPEC", "--environment", request.environment)
        return
    yield from ("--url", str(target.endpoint_url))
    for option, value in (("--model", target.model), ("--api-key-variable", target.api_key_variable)):
        if value is not None:
            yield from (option, value)
    if work.source != "trace":
        yield from ("--input-tokens", str(work.input_tokens), "--output-tokens", str(work.output_tokens))
    for objective in request.objectives:
        statistic = "" if objective.statistic == "value" else f".{objective.statistic}"
        yield from ("--slo", f"{objective.metric}{statistic}={_exact(objective.bound)}")
    if request.load.arrival == "closed":
        yield from ("--gate", str(request.gate_concurrency))
    if request.usd_per_hour_per_copy is not None:
        yield from ("--usd-per-hour", _exact(request.usd_per_hour_per_copy))


def _load(request: TrialRequest) -> Iterator[str]:
    load = request.load
    if request.workload.source == "jsonl":
        yield from ("--prompts", "PROMPTS.jsonl")
    if load.protocol != "seatrial":
        yield from ("--protocol", load.protocol)
        if load.concurrency_levels != JUMPSTART_LEVELS:
            yield from ("--levels", ",".join(map(str, load.concurrency_levels)))
    else:
        yield from _timing(load)
    if load.requests is not None and load.arrival == "closed":
        yield from ("--requests", str(load.requests))
    if request.target.kind == "openai":
        yield from _limits(load)


def _limits(load: Load) -> Iterator[str]:
    """Yield the bounds of a server's trial that aren't those of `seatrial bench --url` without options."""
    own = load.protocol == "seatrial"
    limits: dict[str, tuple[float | None, float | None]] = {
        "--timeout": (load.request_timeout_s, 60.0 if own else load.request_timeout_s),
        "--retries": (load.max_retries, 0),
        "--stall-timeout": (load.stall_timeout_s, None),
        "--workers": (load.workers, None),
        "--budget": (load.budget_s / S_PER_MINUTE, 10.0),
        "--budget-usd": (load.budget_usd, None),
        "--connections": (load.max_connections, load.max_connections if load.arrival == "closed" else 512),
    }
    for option, (value, usual) in limits.items():
        if value is not None and value != usual:
            yield from (option, _exact(value))


def _timing(load: Load) -> Iterator[str]:
    match load.arrival:
        case "closed":
            yield from ("--levels", ",".join(map(str, load.concurrency_levels)))
        case "replay":
            yield from ("--trace", "TRACE")
        case _:
            rates = ",".join(_exact(rate) for rate in load.rates_per_s)
            yield from ("--rate", rates, "--arrival", load.arrival, "--level-seconds", _exact(load.level_s))
    if load.search != "sweep":
        yield from ("--search", load.search, "--goal", load.goal)


def _exact(value: float) -> str:
    """Write a number as it was set: with the digits that make the same trial, and without the noise of binary ones."""
    return f"{value:.12g}"
