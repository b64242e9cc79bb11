"""What can be asked for besides the prompt; what is left out is the container's default."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place
from seatrial_load.payload.error import REQUEST_RULE, RequestError
from seatrial_load.payload.schema import FACTS, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from seatrial_load.payload.json_text import Json

WHERE = "request"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How to generate.

    Attributes:
        max_tokens: The limit on generated tokens.
        temperature: 0 is greedy.
        top_p: Share of the probability mass to draw from, above 0 and at most 1 (TGI: below 1).
        top_k: Number of tokens to draw from.
        repetition_penalty: 1 is none.
        seed: Of the random draws.
        stop: Texts that end the generation.
        ignore_eos: Generate past the end of the text, up to `max_tokens`.
        log_probabilities: Ask for the log-probability of each token. The generate schemas (LMI, TGI) tell it anyway.
        extra: More keys, spelled as the engine does: parameters of a generate schema, top-level keys of OpenAI's.
    """

    max_tokens: int | None = None
    temperature: float | None = None
    top_p: float | None = None
    top_k: int | None = None
    repetition_penalty: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()
    ignore_eos: bool = False
    log_probabilities: bool = False
    extra: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def samples(self) -> bool | None:
        """Whether tokens are drawn at random; None leaves it to the container."""
        if self.temperature == 0:
            return False
        drawn = any(value is not None for value in (self.temperature, self.top_p, self.top_k))
        return True if drawn else None


def check_options(schema: Schema, options: Options) -> None:
    """Check what the schema can say and which values can be.

    Raises:
        RequestError: SEA370, with every problem.
    """
    found = (*_impossible(options), *_contradictory(options), *_unsayable(schema, options))
    problems = [Finding(REQUEST_RULE, Place.at(WHERE, name), message) for name, message in found]
    if problems:
        raise RequestError(problems)


def _impossible(options: Options) -> Iterator[tuple[str, str]]:
    numbers: Mapping[str, float | None] = {
        "max_tokens": options.max_tokens,
        "top_k": options.top_k,
        "top_p": options.top_p,
        "repetition_penalty": options.repetition_penalty,
    }
    for name, number in numbers.items():
        if number is not None and not (number > 0 and math.isfinite(number)):
            yield name, f"{number:g} is not above 0"
    yield from _beyond(options)


def _beyond(options: Options) -> Iterator[tuple[str, str]]:
    if options.top_p is not None and options.top_p > 1:
        yield "top_p", f"{options.top_p:g} exceeds 1"
    if options.temperature is not None and not (options.temperature >= 0 and math.isfinite(options.temperature)):
        yield "temperature", f"{options.temperature:g} is not a number of at least 0"
    if "" in options.stop:
        yield "stop", "an empty string would stop every generation"


def _contradictory(options: Options) -> Iterator[tuple[str, str]]:
    if options.temperature != 0:
        return
    for name, value in (("top_p", options.top_p), ("top_k", options.top_k)):
        if value is not None:
            yield name, "has no effect with temperature 0 (greedy)"


def _unsayable(schema: Schema, options: Options) -> Iterator[tuple[str, str]]:
    if options.ignore_eos and FACTS[schema].ignore_eos_key is None:
        yield "ignore_eos", f"{schema} does not support it"
    if schema is Schema.TGI and options.top_p == 1:
        yield "top_p", "TGI needs top_p below 1; leave it out for 1"
