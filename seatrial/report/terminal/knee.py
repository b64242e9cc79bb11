"""The knee of a predicted curve: where more load no longer pays."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.plan.document import CurvePoint

WORTHWHILE = 0.5  # of the share by which the load grows
MEANING = "beyond it, throughput grows less than half as fast as load"


def predicted_knee(curve: Sequence[CurvePoint]) -> int | None:
    """Return the first level from which the next brings less than half as much as its load grows; `None` without one.

    Between two levels the load grows by dC / C and the throughput by dT / T: the knee is where dT / T < 0.5 * dC / C.
    """
    for here, following in pairwise(curve):
        more_load = following.concurrency / here.concurrency - 1
        if following.output_tok_s / here.output_tok_s - 1 < WORTHWHILE * more_load:
            return here.concurrency
    return None
