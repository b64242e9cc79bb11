"""Values of a spec for the laptop: a load that its engine, a small random model on the CPU, carries in a minute.

The values follow from the spec alone, so that synthesis gives the same bytes everywhere; what is written below
`environments` for the laptop is kept as it is. Measured on two cores, the engine gives some 1,000 tok/s when nothing
else runs, and a quarter of it beside a busy test suite.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

from seatrial.specs.endpoint import Percentiles
from seatrial.specs.yaml_source import OVERRIDES, dotted
from seatrial_base.bounds import LONGEST_LATENCY_MS
from seatrial_base.frozen_model import FrozenModel
from seatrial_load.documents.arrivals import ARRIVALS

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.yaml_source import Document
    from seatrial_load.prompts.dataset import Dataset


MOST_INPUT_TOKENS: Final = 64
MOST_OUTPUT_TOKENS: Final = 32
MOST_TURN_DELAY_S: Final = 0.5
MOST_IN_FLIGHT: Final = 8
MOST_FEWEST_COPIES: Final = 1
"""Each copy is an engine of its own on the same cores: one carries the load, and what scaling adds is another."""
MOST_PER_SECOND: Final = 4.0
MOST_MODEL_LEN: Final = 8192
"""Its KV cache then holds 32 of the longest requests (`KV_POOL_TOKENS` of the local engine)."""
LATENCY_FACTOR: Final = 10
"""By which bounds of latencies are multiplied: what no engine keeps is still missed, and another bound is another."""
LEAST_TOK_S: Final = 50.0
BUDGET_MINUTES: Final = 1.0
OPEN_LOOP_BUDGET_MINUTES: Final = 6.0
"""Three levels of 230 requests, which prove a p99, at `MOST_PER_SECOND`."""
REQUEST_TIMEOUT_S: Final = 20.0

Pairs = tuple[tuple[int, int], ...]
Value = int | float | tuple[int, ...] | None
Model = TypeVar("Model", bound=FrozenModel)


@dataclass(frozen=True, slots=True)
class LocalValue:
    """A value that the laptop has in place of the spec's.

    Attributes:
        path: The field.
        asked: What the spec says, or its default.
        used: What the laptop has.
    """

    path: tuple[str, ...]
    asked: Value
    used: Value

    @property
    def words(self) -> str:
        """As `workload.input_tokens: 1,000 -> 64`."""
        return f"{self.field}: {self.asked_words} -> {self.used_words}"

    @property
    def field(self) -> str:
        """The field, as `workload.input_tokens`."""
        return dotted(self.path)

    @property
    def asked_words(self) -> str:
        """What the spec says, as `1,000`."""
        return "default" if self.asked is None else _words(self.asked)

    @property
    def used_words(self) -> str:
        """What the laptop has, as `64`."""
        return _words(self.used)


@dataclass(frozen=True, slots=True)
class LocalSpec:
    """A spec as the laptop has it.

    Attributes:
        endpoint: The spec.
        dataset: What is taken of its file of requests; empty without one.
        values: What differs from what was requested, in the order of the spec.
    """

    endpoint: EndpointSpec
    dataset: Dataset
    values: tuple[LocalValue, ...]


def local_spec(endpoint: EndpointSpec, dataset: Dataset, document: Document) -> LocalSpec:
    """Return a spec with the values that the laptop has for what no one set there."""
    shorter = _Shorter.of(endpoint, document)
    pairs = tuple((shorter.prompt(prompt), shorter.answer(answer)) for prompt, answer in dataset.pairs)
    scaling, fewest = endpoint.scaling, min(endpoint.scaling.min_copies, MOST_FEWEST_COPIES)
    limits = [LocalValue(("scaling", "min_copies"), scaling.min_copies, fewest)]
    # Where nothing changes the number of copies, nothing does on the laptop.
    if scaling.is_fixed:
        limits.append(LocalValue(("scaling", "max_copies"), scaling.max_copies, max(fewest, 1)))
    values = _changed((*_workload(endpoint, pairs, shorter), *_slo(endpoint), *limits), document)
    local = _with_all(endpoint, values)
    # The trial's levels follow from the load that the laptop has, so they are taken of the changed spec.
    trial = _changed(_trial(local, document), document)
    shortened = (
        dataset
        if shorter.is_nothing
        else replace(dataset, pairs=pairs, delays_s=tuple(min(each, MOST_TURN_DELAY_S) for each in dataset.delays_s))
    )
    return LocalSpec(_with_all(local, trial), shortened, (*values, *trial))


@dataclass(frozen=True, slots=True)
class _Shorter:
    """The shares to which prompts and answers are shortened."""

    input: float
    output: float

    @classmethod
    def of(cls, endpoint: EndpointSpec, document: Document) -> _Shorter:
        workload = endpoint.workload
        # A file that is written for the laptop is meant as it is; another one is shortened pair by pair.
        if _is_set(document, ("workload", "dataset")):
            return cls(1.0, 1.0)
        prompts_set = _is_set(document, ("workload", "input_tokens"))
        answers_set = _is_set(document, ("workload", "output_tokens"))
        return cls(
            1.0 if prompts_set else min(1.0, MOST_INPUT_TOKENS / workload.input_tokens),
            1.0 if answers_set else min(1.0, MOST_OUTPUT_TOKENS / workload.output_tokens),
        )

    @property
    def is_nothing(self) -> bool:
        return self.input == self.output == 1.0

    def prompt(self, tokens: int) -> int:
        return max(1, round(tokens * self.input))

    def answer(self, tokens: int) -> int:
        return max(1, round(tokens * self.output))


def _workload(endpoint: EndpointSpec, pairs: Pairs, shorter: _Shorter) -> Iterator[LocalValue]:
    workload = endpoint.workload
    prompt, answer = shorter.prompt(workload.input_tokens), shorter.answer(workload.output_tokens)
    if pairs:
        prompt, answer = (round(sum(tokens) / len(pairs)) for tokens in zip(*pairs, strict=True))
    yield LocalValue(("workload", "input_tokens"), workload.input_tokens, prompt)
    # A shorter mean with the old deviation would be no distribution.
    deviation = int(workload.input_tokens_stddev * shorter.input) if shorter.input < 1 else workload.input_tokens_stddev
    yield LocalValue(("workload", "input_tokens_stddev"), workload.input_tokens_stddev, deviation)
    yield LocalValue(("workload", "output_tokens"), workload.output_tokens, answer)
    deviation = (
        int(workload.output_tokens_stddev * shorter.output) if shorter.output < 1 else workload.output_tokens_stddev
    )
    yield LocalValue(("workload", "output_tokens_stddev"), workload.output_tokens_stddev, deviation)
    for part, shared in (
        ("workload", workload.shared_prefix_tokens),
        ("trial", endpoint.trial.shared_prefix_tokens),
    ):
        yield LocalValue((part, "shared_prefix_tokens"), shared, int(shared * shorter.input))
    delay_s = min(workload.turn_delay_s, MOST_TURN_DELAY_S)
    yield LocalValue(("workload", "turn_delay_s"), workload.turn_delay_s, delay_s)
    if workload.turn_delay_stddev_s:
        # Scaled with the mean, for the same reason.
        deviation_s = workload.turn_delay_stddev_s * delay_s / workload.turn_delay_s
        yield LocalValue(("workload", "turn_delay_stddev_s"), workload.turn_delay_stddev_s, deviation_s)
    workload, fixed = endpoint.workload, endpoint.serving.overrides.max_model_len
    if workload.concurrency is not None:
        yield LocalValue(("workload", "concurrency"), workload.concurrency, min(workload.concurrency, MOST_IN_FLIGHT))
    if workload.requests_per_second is not None:
        rate = min(workload.requests_per_second, MOST_PER_SECOND)
        yield LocalValue(("workload", "requests_per_second"), workload.requests_per_second, rate)
    if workload.max_model_len is not None:
        yield LocalValue(
            ("workload", "max_model_len"), workload.max_model_len, min(workload.max_model_len, MOST_MODEL_LEN)
        )
    if fixed is not None:
        yield LocalValue(("serving", "overrides", "max_model_len"), fixed, min(fixed, MOST_MODEL_LEN))


def _slo(endpoint: EndpointSpec) -> Iterator[LocalValue]:
    slo = endpoint.slo
    for metric, bounds in (("ttft_ms", slo.ttft_ms), ("tpot_ms", slo.tpot_ms), ("e2e_latency_ms", slo.e2e_latency_ms)):
        for statistic in Percentiles.model_fields:
            bound: float | None = getattr(bounds, statistic)
            if bound is not None:
                used = min(bound * LATENCY_FACTOR, LONGEST_LATENCY_MS)
                yield LocalValue(("slo", metric, statistic), bound, used)
    if slo.output_tok_s is not None:
        yield LocalValue(("slo", "output_tok_s"), slo.output_tok_s, min(slo.output_tok_s, LEAST_TOK_S))
    if slo.quality is not None:  # random weights answer nothing right
        for name in ("exact_match", "mean_logprob", "perplexity"):
            yield LocalValue(("slo", "quality", name), getattr(slo.quality, name), None)


def _trial(endpoint: EndpointSpec, document: Document) -> Iterator[LocalValue]:
    """Yield the trial's values; limits that the spec writes are kept, levels that it writes up to twice the load."""
    trial, load = endpoint.trial, endpoint.workload.concurrency or MOST_IN_FLIGHT
    given = trial.concurrency_levels
    few = {1, max(1, load // 2), load, 2 * load} if given is None else {*(each for each in given if each <= 2 * load)}
    yield LocalValue(("trial", "concurrency_levels"), given, tuple(sorted(few or {load})))
    if document.value("trial", "budget_minutes") is None:
        is_open = ARRIVALS[endpoint.workload.arrivals].is_open
        budget = OPEN_LOOP_BUDGET_MINUTES if is_open else BUDGET_MINUTES
        yield LocalValue(("trial", "budget_minutes"), trial.budget_minutes, budget)
    if document.value("trial", "request_timeout_s") is None:
        yield LocalValue(("trial", "request_timeout_s"), trial.request_timeout_s, REQUEST_TIMEOUT_S)


def _changed(values: Iterator[LocalValue] | Sequence[LocalValue], document: Document) -> tuple[LocalValue, ...]:
    return tuple(each for each in values if each.used != each.asked and not _is_set(document, each.path))


def _is_set(document: Document, path: tuple[str, ...]) -> bool:
    # What the base of a spec says is meant for real hardware; only an override of this environment is for the laptop.
    return document.value(*path) is not None and document.origin(path)[0] == OVERRIDES


def _with_all(endpoint: EndpointSpec, values: Sequence[LocalValue]) -> EndpointSpec:
    for each in values:
        endpoint = _with(endpoint, each.path, each.used)
    return endpoint


def _with(model: Model, path: Sequence[str], value: Value) -> Model:
    first, *rest = path
    inner = getattr(model, first)
    return model.model_copy(update={first: _with(inner, rest, value) if rest else value})


def _words(value: Value) -> str:
    if value is None:
        return "none"
    if isinstance(value, tuple):
        return ", ".join(f"{each:,}" for each in value)
    return f"{value:,.10g}"
