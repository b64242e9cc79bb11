"""Asks a trial's evaluation set and judges the answers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from seatrial_base.errors import BenchError
from seatrial_load.quality.answers import MOST_AT_ONCE, QualityTools, collect_answers
from seatrial_load.quality.floor import judged_quality, not_asked

if TYPE_CHECKING:
    from seatrial_load.model.request import PayloadSchema, TrialTarget
    from seatrial_load.quality.floor import QualityFloor, QualityResult


LONGEST_ASKING_S: Final = 420.0
"""The function that concludes a trial has 15 minutes, and proofs and CloudWatch need some of them."""


def measure_quality(
    floor: QualityFloor,
    target: TrialTarget,
    schema: PayloadSchema,
    *,
    confidence: float,
    within_s: float,
    streams: int = MOST_AT_ONCE,
    tools: QualityTools,
) -> QualityResult:
    """Ask the evaluation set and hold the answers against the bounds; what can't be asked is said, not raised.

    Args:
        floor: The set and the bounds.
        target: The endpoint.
        schema: The body's schema.
        confidence: Of the proof: an objective is met or missed only when its one-sided interval says so; 0 takes the
            measured value as it is.
        within_s: After so many seconds the rest is given up.
        streams: Requests in flight.
        tools: What to ask with.
    """
    if within_s <= 0:
        return not_asked(floor, "the budget was over")
    began_s = tools.clock()
    try:
        answers = collect_answers(
            target,
            schema,
            floor.prompts,
            most_tokens=floor.most_tokens,
            streams=streams,
            within_s=min(within_s, LONGEST_ASKING_S),
            tools=tools,
        )
    except BenchError as error:
        return not_asked(floor, error.problems[0].message)
    return replace(judged_quality(floor, answers, confidence), duration_s=tools.clock() - began_s)
