"""From the options of a command line to the trial that they ask for, with every mistake among them at once."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Literal, TypeVar, get_args
from urllib.parse import urlsplit

from seatrial_base.bounds import MOST_REQUESTS
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_base.units import S_PER_MINUTE
from seatrial_load.cli.options import ArrivalChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial_load.cli.files import PromptFiles
    from seatrial_load.documents.request import Api, Load, Objective, TrialRequest, Workload


Number = TypeVar("Number", int, float)
DEFAULT_LEVELS = (1, 2, 4, 8, 16, 32, 64)
MAX_ERROR_RATE = 0.01
"""The share of a level's requests that may fail, where nothing else is said."""
WHERE = "command line"
RULE = "SEA501"
SERVER_OPTIONS = (
    "--model",
    "--api-key-variable",
    "--input-tokens",
    "--input-tokens-stddev",
    "--output-tokens",
    "--output-tokens-stddev",
    "--shared-prefix-tokens",
    "--turns",
    "--slo",
    "--max-error-rate",
    "--gate",
    "--usd-per-hour",
)
_CLOSED_LOOP = ("--levels", "--search", "--goal", "--gate", "--requests", "--protocol")
_MADE_UP = ("--input-tokens-stddev", "--output-tokens-stddev", "--shared-prefix-tokens", "--turns")
_EXCLUDED = (
    ("--rate", _CLOSED_LOOP, "the levels of an open loop are its rates"),
    ("--trace", (*_CLOSED_LOOP, "--rate"), "a replay is one level with the recorded times"),
    (
        "--trace",
        ("--input-tokens", "--output-tokens", *_MADE_UP, "--prompts", "--tokenizer"),
        "the trace has the lengths",
    ),
    ("--prompts", ("--tokenizer", *_MADE_UP), "the prompts are sent unchanged"),
    ("--tokenizer", ("--shared-prefix-tokens",), "prompts of exact lengths share none"),
    ("--turns", ("--rate", "--tokenizer", "--protocol"), "a turn follows the answer before it"),
    ("--protocol", ("--search", "--goal", "--timeout", "--retries"), "the article's protocol sets them"),
    ("--url", ("--api",), "a server has one path"),
)
_NEEDS = (
    *((option, ("--url",)) for option in SERVER_OPTIONS),
    ("--arrival", ("--rate",)),
    ("--smoothness", ("--rate",)),
    ("--prefix-groups", ("--shared-prefix-tokens",)),
    ("--turns-stddev", ("--turns",)),
    ("--turn-delay", ("--turns",)),
    ("--turn-delay-stddev", ("--turn-delay",)),
    ("--level-seconds", ("--rate",)),
    ("--connections", ("--rate", "--trace")),
    ("--speed", ("--trace",)),
)
_OPTION_OF = {
    "target.endpoint_url": "--url",
    "target.api_key_variable": "--api-key-variable",
    "workload.input_tokens": "--input-tokens",
    "workload.output_tokens": "--output-tokens",
    "workload.input_tokens_stddev": "--input-tokens-stddev",
    "workload.output_tokens_stddev": "--output-tokens-stddev",
    "workload.shared_prefix_tokens": "--shared-prefix-tokens",
    "workload.prefix_groups": "--prefix-groups",
    "workload.turns": "--turns",
    "workload.turns_stddev": "--turns-stddev",
    "workload.turn_delay_s": "--turn-delay",
    "objectives": "--slo",
    "gate.max_error_rate": "--max-error-rate",
    "gate_concurrency": "--gate",
    "usd_per_hour_per_copy": "--usd-per-hour",
    "load.concurrency_levels": "--levels",
    "load.requests": "--requests",
    "load.rates_per_s": "--rate",
    "load.arrival_smoothness": "--smoothness",
    "load.level_s": "--level-seconds",
    "load.max_connections": "--connections",
    "load.budget_s": "--budget (in s)",
    "load.budget_usd": "--budget-usd",
    "load.request_timeout_s": "--timeout",
    "load.stall_timeout_s": "--stall-timeout",
    "load.max_retries": "--retries",
    "load.workers": "--workers",
}
_USERS_RULES = ("SEA501", "SEA506", "SEA509", "SEA510")  # an impossible request, and files that the options name


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOptions:
    """Options of the command line; what is None stays as the spec, or the default of the load, has it.

    Attributes:
        levels: Concurrency per copy, as in `1,2,4`.
        rates: Requests per second of an open loop, as in `1,2,4`; of a ramp, its start and its end.
        arrival: How an open loop times its requests.
        arrival_smoothness: Shape of the gaps of `gamma`.
    """

    levels: str | None = None
    search: Literal["sweep", "adaptive", "every_level"] | None = None
    goal: Literal["knee", "max_concurrency", "max_goodput"] | None = None
    requests: int | None = None
    budget_minutes: float | None = None
    budget_usd: float | None = None
    request_timeout_s: float | None = None
    stall_timeout_s: float | None = None
    max_retries: int | None = None
    workers: int | None = None
    rates: str | None = None
    arrival: ArrivalChoice = "poisson"
    arrival_smoothness: float | None = None
    level_s: float | None = None
    max_connections: int | None = None
    protocol: Literal["jumpstart-2024"] | None = None
    api: Api | None = None


def with_load(request: TrialRequest, options: LoadOptions, mistakes: Mistakes) -> TrialRequest:
    """Return the trial with the load that the options ask for; a list that isn't one of numbers is a mistake."""
    levels = _levels(options.levels, mistakes)
    rates = _rates(options.rates, mistakes)
    changed = replace(
        request, load=_changed(request.load, options, levels, rates), workload=_on_path(request.workload, options.api)
    )
    if options.protocol is None:
        return changed
    from seatrial_load.trial.steps import jumpstart_2024

    article = jumpstart_2024(changed)
    return article if levels is None else replace(article, load=replace(article.load, concurrency_levels=levels))


def _on_path(workload: Workload, api: Api | None) -> Workload:
    """Return the requests on the path that is asked for; SageMaker's OpenAI path takes chats alone."""
    if api is None:
        return workload
    if api == "openai":
        return replace(workload, api=api, schema="openai_chat", sends_prefix_id=False)
    return replace(workload, api=api)


def _changed(load: Load, options: LoadOptions, levels: tuple[int, ...] | None, rates: tuple[float, ...] | None) -> Load:
    from seatrial_load.documents.request import closed_loop

    closed = replace(
        load if levels is None else closed_loop(load),
        concurrency_levels=load.concurrency_levels if levels is None else levels,
        search=options.search or ("every_level" if levels is not None and load.search == "sweep" else load.search),
        goal=options.goal or load.goal,
        requests=_else(options.requests, load.requests),
        budget_s=load.budget_s if options.budget_minutes is None else options.budget_minutes * S_PER_MINUTE,
        budget_usd=_else(options.budget_usd, load.budget_usd),
        request_timeout_s=load.request_timeout_s if options.request_timeout_s is None else options.request_timeout_s,
        stall_timeout_s=_else(options.stall_timeout_s, load.stall_timeout_s),
        max_retries=load.max_retries if options.max_retries is None else options.max_retries,
        workers=_else(options.workers, load.workers),
        level_s=load.level_s if options.level_s is None else options.level_s,
        max_connections=load.max_connections if options.max_connections is None else options.max_connections,
    )
    if rates is None or options.protocol is not None:
        return closed
    smoothness = 1.0 if options.arrival_smoothness is None else options.arrival_smoothness
    return replace(
        closed,
        arrival=options.arrival,
        arrival_smoothness=smoothness,
        rates_per_s=rates,
        rates_for_copies=None,
        gate_rate_per_s=None,
        search="sweep",
    )


def _else(option: Number | None, otherwise: Number | None) -> Number | None:
    return otherwise if option is None else option


def _levels(text: str | None, mistakes: Mistakes) -> tuple[int, ...] | None:
    if text is None:
        return None
    try:
        return tuple(sorted({int(level) for level in text.split(",")}))
    except ValueError:
        mistakes.say("--levels", f"{text!r} is not a list of whole numbers as in 1,2,4")
        return None


def _rates(text: str | None, mistakes: Mistakes) -> tuple[float, ...] | None:
    if text is None:
        return None
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        mistakes.say("--rate", f"{text!r} is not a list of numbers as in 1,2.5")
        return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerOptions:
    """What the command line says of a server.

    Attributes:
        url: Its base URL, as in `http://localhost:8000/v1`.
        model: The `model` of a request.
        api_key_variable: The environment variable that holds its key.
        input_tokens: Mean length of a prompt.
        output_tokens: Mean length of an answer.
        input_tokens_stddev: Standard deviation of the length of a prompt.
        output_tokens_stddev: Standard deviation of the length of an answer.
        shared_prefix_tokens: Length of the prefix that prompts share.
        prefix_groups: Number of different prefixes.
        turns: Mean number of turns of a conversation.
        turns_stddev: Its standard deviation.
        turn_delay_s: Mean time that a user thinks before a further turn, in seconds.
        turn_delay_stddev_s: Its standard deviation.
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
    input_tokens_stddev: float = 0.0
    output_tokens_stddev: float = 0.0
    shared_prefix_tokens: int = 0
    prefix_groups: int = 1
    turns: int = 1
    turns_stddev: float = 0.0
    turn_delay_s: float = 0.0
    turn_delay_stddev_s: float = 0.0
    objectives: tuple[str, ...]
    max_error_rate: float | None
    usd_per_hour: float | None
    gate: int | None


def request_of_server(options: ServerOptions, mistakes: Mistakes) -> TrialRequest:
    """Return the trial of a server, at the default levels and with a budget of ten minutes.

    An objective or a URL that isn't one is a mistake.
    """
    from seatrial_load.documents.request import Gate, Load, TrialRequest, TrialTarget, Workload

    objectives = tuple(_objectives(options.objectives, mistakes))
    return TrialRequest(
        endpoint=options.model or _host(options.url) or options.url,
        environment="none",
        plan_digest="",
        target=TrialTarget(
            endpoint_name=options.model or options.url,
            inference_component=None,
            region="none",
            endpoint_url=options.url,
            kind="openai",
            model=options.model,
            api_key_variable=options.api_key_variable,
        ),
        expected=None,
        workload=Workload(
            input_tokens=options.input_tokens,
            output_tokens=options.output_tokens,
            schema="openai_chat",
            shared_prefix_tokens=options.shared_prefix_tokens,
            prefix_groups=options.prefix_groups,
            input_tokens_stddev=options.input_tokens_stddev,
            output_tokens_stddev=options.output_tokens_stddev,
            turns=options.turns,
            turns_stddev=options.turns_stddev,
            turn_delay_s=options.turn_delay_s,
            turn_delay_stddev_s=options.turn_delay_stddev_s,
        ),
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
    """Return the host that a URL names; empty for what is no URL."""
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
    from seatrial_load.documents.request import Metric, Objective, Statistic

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


def _with_gate(request: TrialRequest, server: ServerOptions) -> TrialRequest:
    """Return a server's trial with its gate, the lowest level unless it was named.

    The error rate holds at every level of a sweep; where a gate was named, or levels are tried until something gives
    way, up to the gate.
    """
    lowest, load = min(request.load.concurrency_levels), request.load
    if server.gate is None and lowest > 0:
        request = replace(request, gate_concurrency=lowest)
    if server.gate is None and load.search != "adaptive" and load.protocol == "seatrial":
        return request
    return replace(request, gate=replace(request.gate, max_error_rate_up_to=request.gate_concurrency))


@dataclass(slots=True)
class Mistakes:
    """What was found so far; `given` are the options that the user wrote."""

    given: frozenset[str]
    problems: list[Finding] = field(default_factory=list)

    def say(self, option: str, message: str) -> None:
        """Take a problem of an option."""
        self.problems.append(Finding(RULE, Place.at(WHERE, option), message))

    def stop_if_any(self) -> None:
        """Raise what was found.

        Raises:
            SpecError: SEA501 and others, with every problem.
        """
        if self.problems:
            raise SpecError(self.problems)

    def combinations(self) -> None:
        """Find the options that exclude each other, and those that say nothing without another."""
        for option, others, because in _EXCLUDED:
            for other in others:
                if {option, other} <= self.given:
                    self.say(option, f"can't be combined with {other}: {because}")
        for option, needed in _NEEDS:
            if option in self.given and not self.given & set(needed):
                self.say(option, f"needs {' or '.join(needed)}")

    def speed(self, speed: float) -> None:
        """Find a speed of replay that is none."""
        if not (speed > 0 and isfinite(speed)):
            self.say("--speed", f"{speed:g} is not a finite number above 0")

    def values(self, request: TrialRequest) -> None:
        """Find the values that no trial can have."""
        from seatrial_load.client.connection import address_of
        from seatrial_load.documents.request_checks import check_trial_request

        checks: list[Callable[[], object]] = [lambda: check_trial_request(request)]
        if request.target.kind == "openai":
            checks.append(lambda: address_of(request.target, stream=True))
        for check in checks:
            try:
                check()
            except BenchError as impossible:
                self.problems.extend(self.in_options(impossible))
        self._wrong_gate(request)
        self._too_much(request)
        if "--goal" in self.given and request.load.search != "adaptive" and "--rate" not in self.given:
            self.say("--goal", "needs --search adaptive")

    def in_options(self, error: BenchError) -> list[Finding]:
        """Return an error's problems, naming options where it names the fields that they fill."""
        return [self._in_options(problem) for problem in error.problems]

    def is_users(self, error: BenchError) -> bool:
        """Tell whether every problem is of the command line, or of a file that it names."""
        problems = self.in_options(error)
        return all(problem.where == WHERE or problem.rule in _USERS_RULES for problem in problems)

    def _in_options(self, problem: Finding) -> Finding:
        option = _OPTION_OF.get(problem.field.partition("[")[0])
        if option is None or not self.given & {"--url", option.partition(" ")[0]}:
            return problem
        return replace(problem, place=Place(WHERE, field=option))

    def _wrong_gate(self, request: TrialRequest) -> None:
        levels, gate = request.load.concurrency_levels, request.gate_concurrency
        if "--gate" not in self.given or request.load.arrival != "closed" or not levels or gate < 1:
            return
        if request.load.search == "adaptive" and not levels[0] <= gate <= levels[-1]:
            self.say("--gate", f"{gate} is not between the lowest and the highest level, {levels[0]} and {levels[-1]}")
        if request.load.search != "adaptive" and gate not in levels:
            self.say("--gate", f"{gate} is not one of the levels {', '.join(map(str, levels))}")

    def _too_much(self, request: TrialRequest) -> None:
        load = request.load
        most = max(load.rates_per_s, default=0.0) * load.level_s
        if most > MOST_REQUESTS:
            self.say("--rate", f"{most:,.0f} requests per level; the maximum is {MOST_REQUESTS:,}")


@contextmanager
def as_mistakes(mistakes: Mistakes) -> Iterator[None]:
    """Raise what turns out to be the user's mistake only when the trial begins as the others: it exits with 2.

    Raises:
        SpecError: Every problem concerns the command line or a file that it names.
        BenchError: As it came.
    """
    try:
        yield
    except BenchError as error:
        if not mistakes.is_users(error):
            raise
        raise SpecError(mistakes.in_options(error)) from error


def server_request(server: ServerOptions, load: LoadOptions, files: PromptFiles, mistakes: Mistakes) -> TrialRequest:
    """Return the trial of a server under the load that the options ask for.

    Raises:
        SpecError: SEA501, with every mistake of the command line.
    """
    mistakes.combinations()
    mistakes.speed(files.speed)
    request = _with_gate(with_load(request_of_server(server, mistakes), load, mistakes), server)
    mistakes.values(request)
    mistakes.stop_if_any()
    return request
