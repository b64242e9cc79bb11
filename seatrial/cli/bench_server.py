"""The trial of an OpenAI-compatible server, which needs no spec: what to send it, and what is good."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, get_args
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from seatrial.bench.request import Objective, TrialRequest
    from seatrial.cli.bench_mistakes import Mistakes

DEFAULT_LEVELS = (1, 2, 4, 8, 16, 32, 64)
MAX_ERROR_RATE = 0.01
"""The share of a level's requests that may fail, where nothing else is said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What the command line says of a server.

    Attributes:
        url: Its base URL, as in `http://localhost:8000/v1`.
        model: The `model` of a request.
        api_key_variable: The environment variable that holds its key.
        input_tokens: Length of a prompt.
        output_tokens: Length of an answer.
        objectives: Bounds such as `ttft_ms.p95=500`, `error_rate=0.01` or `output_tok_s=1000`.
        max_error_rate: Share of a level's requests that may fail; None is the default, or what an objective says.
        usd_per_hour: What the server costs.
        gate: Requests in flight at which the objectives must hold; None is the lowest level.
    """

    url: str
    model: str | None
    api_key_variable: str | None
    input_tokens: int
    output_tokens: int
    objectives: tuple[str, ...]
    max_error_rate: float | None
    usd_per_hour: float | None
    gate: int | None


def request_of_server(options: ServerOptions, mistakes: Mistakes) -> TrialRequest:
    """Return the trial of a server, at the default levels and with a budget of ten minutes.

    An objective or a URL that isn't one is a mistake.
    """
    from seatrial.bench.load import Load
    from seatrial.bench.request import Gate, Target, TrialRequest, Workload

    objectives = tuple(_objectives(options.objectives, mistakes))
    return TrialRequest(
        endpoint=options.model or _host(options.url) or options.url,
        environment="none",
        plan_digest="",
        target=Target(
            endpoint_name=options.model or options.url,
            inference_component=None,
            region="none",
            endpoint_url=options.url,
            kind="openai",
            model=options.model,
            api_key_variable=options.api_key_variable,
        ),
        expected=None,
        workload=Workload(input_tokens=options.input_tokens, output_tokens=options.output_tokens, schema="openai_chat"),
        load=Load(
            concurrency_levels=DEFAULT_LEVELS,
            ramp_per_concurrency=1,
            requests_per_concurrency=3,
            max_requests_per_concurrency=6,
            warmup_requests=2,
            budget_s=600.0,
            request_timeout_s=60.0,
        ),
        objectives=objectives,
        gate_concurrency=DEFAULT_LEVELS[0] if options.gate is None else options.gate,
        copy_count=1,
        mode="report",
        usd_per_hour_per_copy=options.usd_per_hour,
        fallback_target_concurrency=1.0,
        target_utilization=1.0,
        gate=Gate(confidence=0.9, max_error_rate=_max_error_rate(options, objectives)),
    )


def _max_error_rate(options: ServerOptions, objectives: Iterable[Objective]) -> float | None:
    """Return the bound that is asked for, else the default one, which an objective on the error rate replaces."""
    if options.max_error_rate is not None:
        return options.max_error_rate
    return None if any(objective.metric == "error_rate" for objective in objectives) else MAX_ERROR_RATE


def _host(url: str) -> str:
    """Return the host that a URL names; empty for what is no URL, which is told when the trial begins."""
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _objectives(texts: Iterable[str], mistakes: Mistakes) -> Iterator[Objective]:
    for text in texts:
        objective = _objective(text)
        if objective is None:
            wanted = "such as ttft_ms.p95=500, error_rate=0.01 or output_tok_s=1000"
            mistakes.say("--slo", f"{text!r} is not an objective {wanted}")
        else:
            yield objective


def _objective(text: str) -> Objective | None:
    from seatrial.bench.request import Metric, Objective, Statistic

    name, equals, bound = text.partition("=")
    metric_name, _, statistic_name = name.partition(".")
    metric = next((known for known in get_args(Metric) if known == metric_name), None)
    statistic = next((known for known in get_args(Statistic) if known == (statistic_name or "value")), None)
    try:
        value = float(bound)
    except ValueError:
        value = None
    if not equals or metric is None or statistic is None or value is None:
        return None
    return Objective(
        metric=metric, statistic=statistic, bound=value, sense="at_least" if metric == "output_tok_s" else "at_most"
    )
