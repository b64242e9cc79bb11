"""What is wrong with a command line of `seatrial bench`: all of it at once, in the words of its options."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from seatrial.bounds import MOST_REQUESTS
from seatrial.errors import BenchError, Problem, SpecError

if TYPE_CHECKING:
    from collections.abc import Iterator

    import typer

    from seatrial.bench.request import TrialRequest

WHERE = "command line"
RULE = "SEA501"
SERVER_OPTIONS = (
    "--model",
    "--api-key-variable",
    "--input-tokens",
    "--output-tokens",
    "--slo",
    "--max-error-rate",
    "--gate",
    "--usd-per-hour",
)
_CLOSED_LOOP = ("--levels", "--search", "--goal", "--gate", "--requests", "--protocol")
_EXCLUDED = (
    ("--rate", _CLOSED_LOOP, "an open loop's levels are its rates, each of --level-seconds"),
    ("--trace", (*_CLOSED_LOOP, "--rate"), "a replay is one level, at the times that were recorded"),
    ("--trace", ("--input-tokens", "--output-tokens", "--prompts", "--tokenizer"), "the trace says the lengths"),
    ("--prompts", ("--tokenizer",), "the file's prompts are sent as they are"),
    ("--protocol", ("--search", "--goal", "--timeout", "--retries"), "the article has its own"),
)
_NEEDS = (
    *((option, ("--url",)) for option in SERVER_OPTIONS),
    ("--arrival", ("--rate",)),
    ("--level-seconds", ("--rate",)),
    ("--connections", ("--rate", "--trace")),
    ("--speed", ("--trace",)),
)
_OPTION_OF = {
    "target.endpoint_url": "--url",
    "target.api_key_variable": "--api-key-variable",
    "workload.input_tokens": "--input-tokens",
    "workload.output_tokens": "--output-tokens",
    "objectives": "--slo",
    "gate.max_error_rate": "--max-error-rate",
    "gate_concurrency": "--gate",
    "usd_per_hour_per_copy": "--usd-per-hour",
    "load.concurrency_levels": "--levels",
    "load.requests": "--requests",
    "load.rates_per_s": "--rate",
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


@dataclass(slots=True)
class Mistakes:
    """What was found so far; `given` are the options that the user wrote."""

    given: frozenset[str]
    problems: list[Problem] = field(default_factory=list)

    def say(self, option: str, message: str) -> None:
        """Take a problem of an option."""
        self.problems.append(Problem(where=WHERE, field=option, rule=RULE, message=message))

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
                self.say(option, f"means nothing without {' or '.join(needed)}")

    def values(self, request: TrialRequest) -> None:
        """Find the values that no trial can have."""
        try:
            request.check()
        except BenchError as impossible:
            self.problems.extend(self.in_options(impossible))
        self._wrong_gate(request)
        self._too_much(request)
        if "--goal" in self.given and request.load.search != "adaptive" and "--rate" not in self.given:
            self.say("--goal", "means nothing without --search adaptive")

    def in_options(self, error: BenchError) -> list[Problem]:
        """Return an error's problems, naming options where it names the fields that they fill."""
        return [self._in_options(problem) for problem in error.problems]

    def is_users(self, error: BenchError) -> bool:
        """Tell whether every problem is of the command line, or of a file that it names."""
        problems = self.in_options(error)
        return all(problem.where == WHERE or problem.rule in _USERS_RULES for problem in problems)

    def _in_options(self, problem: Problem) -> Problem:
        option = _OPTION_OF.get(problem.field.partition("[")[0])
        if option is None or not self.given & {"--url", option.partition(" ")[0]}:
            return problem
        return replace(problem, where=WHERE, field=option)

    def _wrong_gate(self, request: TrialRequest) -> None:
        levels, gate = request.load.concurrency_levels, request.gate_concurrency
        if "--gate" not in self.given or request.load.arrival != "closed" or not levels or gate < 1:
            return
        if request.load.search == "adaptive" and not levels[0] <= gate <= levels[-1]:
            self.say("--gate", f"{gate} is not between the bounds of the search, {levels[0]} and {levels[-1]}")
        if request.load.search == "sweep" and gate not in levels:
            self.say("--gate", f"{gate} is none of the levels {', '.join(map(str, levels))}")

    def _too_much(self, request: TrialRequest) -> None:
        load = request.load
        most = max(load.rates_per_s, default=0.0) * load.level_s
        if most > MOST_REQUESTS:
            self.say("--rate", f"{most:,.0f} requests of one level are more than {MOST_REQUESTS:,}")


def given_options(context: typer.Context) -> frozenset[str]:
    """Return the long names of the options that the user wrote."""
    return frozenset(
        max(parameter.opts, key=len)
        for parameter in context.command.params
        if parameter.name and (source := context.get_parameter_source(parameter.name)) and source.name == "COMMANDLINE"
    )


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
