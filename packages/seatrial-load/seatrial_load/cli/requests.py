"""The trial of a command line's options, with every mistake among them at once."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeAlias, get_args
from urllib.parse import urlsplit

from seatrial_base.bounds import MOST_REQUESTS
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.findings import Finding, Place
from seatrial_load.documents.arrivals import ARRIVALS
from seatrial_load.documents.options import FILES, OPTIONS, TrialFiles
from seatrial_load.documents.request import (
    CONVERSATIONS,
    MADE_UP,
    SERVER,
    Gate,
    Load,
    Metric,
    Objective,
    Statistic,
    TrialRequest,
    TrialTarget,
    Workload,
    closed_loop,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from seatrial_load.documents.options import CommandOption

# The options that the user wrote, by their flags.
Written: TypeAlias = Mapping[str, Any]
DEFAULT_LEVELS = (1, 2, 4, 8, 16, 32, 64)
WHERE = "command line"
RULE = "SEA501"
_CLOSED_LOOP = ("--levels", "--search", "--goal", "--gate", "--requests", "--protocol", "--start")
_MADE_UP = tuple(
    row.flag for row in OPTIONS.values() if row.facts.of in {MADE_UP, CONVERSATIONS} and row.option.needs == SERVER
)
_EXCLUDED = (
    ("--rate", _CLOSED_LOOP, "the levels of an open loop are its rates"),
    ("--trace", ("--rate", "--protocol"), "a replay keeps the recorded times or gaps"),
    ("--speed", _CLOSED_LOOP, "sessions in flight keep the recorded gaps"),
    (
        "--trace",
        ("--input-tokens", "--output-tokens", *_MADE_UP, "--prompts", "--tokenizer"),
        "the trace has the lengths",
    ),
    ("--prompts", ("--tokenizer", *_MADE_UP), "the prompts are sent unchanged"),
    ("--tokenizer", ("--shared-prefix-tokens",), "prompts of exact lengths share none"),
    ("--turns", ("--rate", "--tokenizer", "--protocol"), "a turn follows the response before it"),
    ("--protocol", ("--search", "--goal", "--timeout", "--retries", "--start"), "the article's protocol sets them"),
    ("--url", ("--api",), "a server has one path"),
)
_OPTION_OF = {row.field: row.flag + (" (in s)" if row.option.unit != 1 else "") for row in OPTIONS.values()}
_USERS_RULES = (
    "SEA501",
    "SEA506",
    "SEA509",
    "SEA510",
    "SEA550",
    "SEA551",
)  # an impossible request, and files that the options name


def trial_files(written: Written) -> TrialFiles:
    """Return the files that the options name."""
    named = {row.name: written[row.flag] for row in _of_part(FILES) if row.flag in written}
    return TrialFiles(in_flight=not written.keys().isdisjoint(_CLOSED_LOOP), **named)


def with_options(request: TrialRequest, written: Written, mistakes: Mistakes) -> TrialRequest:
    """Return the trial with the options' values; a list that isn't one of numbers, or of objectives, is a mistake.

    An option without one that it needs is left out: `Mistakes.combinations` reports it.
    """
    values = {flag: value for flag, value in written.items() if _is_effective(flag, written)}
    for flag, read in (("--levels", _levels), ("--rate", _rates), ("--slo", _objectives)):
        if flag in values and (part := read(values.pop(flag), mistakes)):
            values[flag] = part
    load, workload = request.load, request.workload
    if "--levels" in values:
        load = replace(closed_loop(load), search="every_level" if load.search == "sweep" else load.search)
    if "--rate" in values:
        load = replace(closed_loop(load), arrival=OPTIONS["--arrival"].usual, search="sweep")
    if values.get("--api") == "openai":  # SageMaker's OpenAI path takes chats alone
        workload = replace(workload, schema="openai_chat", sends_prefix_id=False)
    changed = replace(
        request,
        target=replace(request.target, **_fields("target", values)),
        workload=replace(workload, **_fields("workload", values)),
        load=replace(load, **_fields("load", values)),
        gate=replace(request.gate, **_fields("gate", values)),
        **_fields("", values),
    )
    if "--protocol" not in values:
        return changed
    from seatrial_load.trial.steps import jumpstart_2024

    article = jumpstart_2024(changed)
    levels = values.get("--levels")
    return article if levels is None else replace(article, load=replace(article.load, concurrency_levels=levels))


def _is_effective(flag: str, written: Written) -> bool:
    needs = OPTIONS[flag].option.needs if flag in OPTIONS else ()
    return flag in OPTIONS and (not needs or not written.keys().isdisjoint(needs))


def _of_part(part: str) -> Iterator[CommandOption]:
    return (row for row in OPTIONS.values() if row.part == part)


def _fields(part: str, values: Written) -> dict[str, Any]:
    """Return the fields of a part of the request that options fill, in the fields' units."""
    filled: dict[CommandOption, Any] = {
        row: row.option.sets or values[row.flag] for row in _of_part(part) if row.flag in values
    }
    return {row.name: value if row.option.unit == 1 else value * row.option.unit for row, value in filled.items()}


def _levels(text: str, mistakes: Mistakes) -> tuple[int, ...]:
    try:
        return tuple(sorted({int(level) for level in text.split(",")}))
    except ValueError:
        mistakes.add("--levels", f"{text!r} is not a list of whole numbers as in 1,2,4")
        return ()


def _rates(text: str, mistakes: Mistakes) -> tuple[float, ...]:
    try:
        return tuple(float(rate) for rate in text.split(","))
    except ValueError:
        mistakes.add("--rate", f"{text!r} is not a list of numbers as in 1,2.5")
        return ()


def request_of_server(written: Written, mistakes: Mistakes) -> TrialRequest:
    """Return the trial of a server, at the default levels and with a budget of ten minutes, unless options set others.

    An objective or a URL that isn't one is a mistake.
    """
    url, model = written["--url"], written.get("--model")
    usual = {row.flag: row.usual for row in OPTIONS.values() if row.option.needs in ((), SERVER) and row.option.default}
    plain = TrialRequest(
        endpoint=model or _host(url) or url,
        environment="none",
        plan_digest="",
        target=TrialTarget(endpoint_name=model or url, inference_component=None, region="none", kind="openai"),
        expected=None,
        workload=Workload(schema="openai_chat", **_fields("workload", usual)),
        load=Load(
            concurrency_levels=DEFAULT_LEVELS,
            ramp_per_concurrency=1,
            requests_per_concurrency=3,
            max_requests_per_concurrency=6,
            warmup_requests=2,
            **_fields("load", usual),
        ),
        objectives=(),
        gate_concurrency=DEFAULT_LEVELS[0],
        copy_count=1,
        mode="report",
        usd_per_hour_per_copy=None,
        fallback_target_concurrency=1.0,
        target_utilization=1.0,
        gate=Gate(confidence=0.9, **_fields("gate", usual)),
    )
    request = with_options(plain, written, mistakes)
    if "--max-error-rate" in written or all(objective.metric != "error_rate" for objective in request.objectives):
        return request
    return replace(request, gate=replace(request.gate, max_error_rate=None))


def _host(url: str) -> str:
    try:
        return urlsplit(url).netloc
    except ValueError:
        return ""


def _objectives(texts: Iterable[str], mistakes: Mistakes) -> tuple[Objective, ...]:
    parsed = [(text, _objective(text)) for text in texts]
    for text in (text for text, objective in parsed if objective is None):
        wanted = "such as ttft_ms.p95=500, error_rate=0.01 or output_tok_s=1000"
        mistakes.add("--slo", f"{text!r} is not an objective {wanted}")
    return tuple(objective for _, objective in parsed if objective is not None)


def _objective(text: str) -> Objective | None:
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


def _with_gate(request: TrialRequest, *, is_written: bool) -> TrialRequest:
    """Return a server's trial with its gate, the lowest level unless it was written.

    The error rate holds at every level of a sweep; where a gate was written, or levels go up until a limit, up to the
    gate.
    """
    lowest, load = min(request.load.concurrency_levels), request.load
    if not is_written and lowest > 0:
        request = replace(request, gate_concurrency=lowest)
    if not is_written and load.search != "adaptive" and load.protocol == "seatrial":
        return request
    return replace(request, gate=replace(request.gate, max_error_rate_up_to=request.gate_concurrency))


@dataclass(slots=True)
class Mistakes:
    """The mistakes so far; `given` are the options that the user wrote."""

    given: frozenset[str]
    problems: list[Finding] = field(default_factory=list)

    def add(self, option: str, message: str) -> None:
        """Add a problem of an option."""
        self.problems.append(Finding(RULE, Place.at(WHERE, option), message))

    def stop_if_any(self) -> None:
        """Raise the mistakes.

        Raises:
            SpecError: SEA501 and others, with every problem.
        """
        if self.problems:
            raise SpecError(self.problems)

    def combinations(self) -> None:
        """Add the options that exclude each other, and those that lack one that they need."""
        for option, others, because in _EXCLUDED:
            for other in others:
                if {option, other} <= self.given:
                    self.add(option, f"can't be combined with {other}: {because}")
        for flag, needs in ((row.flag, row.option.needs) for row in OPTIONS.values()):
            if flag in self.given and needs and not self.given & set(needs):
                self.add(flag, f"needs {' or '.join(needs)}")

    def speed(self, speed: float) -> None:
        """Add a speed of replay that is none."""
        if not (speed > 0 and isfinite(speed)):
            self.add("--speed", f"{speed:g} is not a finite number above 0")

    def values(self, request: TrialRequest) -> None:
        """Add the values that no trial can have."""
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
        load = request.load
        most = max(load.rates_per_s, default=0.0) * load.level_s
        if most > MOST_REQUESTS:
            self.add("--rate", f"{most:,.0f} requests per level; the maximum is {MOST_REQUESTS:,}")
        if "--goal" in self.given and request.load.search != "adaptive" and "--rate" not in self.given:
            self.add("--goal", "needs --search adaptive")

    def in_options(self, error: BenchError) -> list[Finding]:
        """Return an error's problems, naming options where it names the fields that they fill."""
        problems = []
        for problem in error.problems:
            option = _OPTION_OF.get(problem.field.partition("[")[0])
            is_named = option is not None and self.given & {"--url", option.partition(" ")[0]}
            problems.append(replace(problem, place=Place(WHERE, field=option or "")) if is_named else problem)
        return problems

    def is_users(self, error: BenchError) -> bool:
        """Return whether every problem is of the command line, or of a file that it names."""
        problems = self.in_options(error)
        return all(problem.where == WHERE or problem.rule in _USERS_RULES for problem in problems)

    def _wrong_gate(self, request: TrialRequest) -> None:
        levels, gate = request.load.concurrency_levels, request.gate_concurrency
        if "--gate" not in self.given or ARRIVALS[request.load.arrival].is_open or not levels or gate < 1:
            return
        if request.load.search == "adaptive" and not levels[0] <= gate <= levels[-1]:
            self.add("--gate", f"{gate} is not between the lowest and the highest level, {levels[0]} and {levels[-1]}")
        if request.load.search != "adaptive" and gate not in levels:
            self.add("--gate", f"{gate} is not one of the levels {', '.join(map(str, levels))}")


@contextmanager
def as_mistakes(mistakes: Mistakes) -> Iterator[None]:
    """Raise a mistake of the user that shows only when the trial begins as the others are: it exits with 2.

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


def server_request(written: Written, mistakes: Mistakes) -> TrialRequest:
    """Return the trial of a server under the load of the options.

    Raises:
        SpecError: SEA501, with every mistake of the command line.
    """
    mistakes.combinations()
    mistakes.speed(trial_files(written).speed)
    request = _with_gate(request_of_server(written, mistakes), is_written="--gate" in written)
    mistakes.values(request)
    mistakes.stop_if_any()
    return request
