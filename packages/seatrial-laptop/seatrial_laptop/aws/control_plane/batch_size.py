"""How many copies one step of a rolling update replaces."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

from seatrial_laptop.aws.api import invalid
from seatrial_laptop.aws.json_document import text, whole

if TYPE_CHECKING:
    from seatrial_laptop.aws.json_document import Document


LEAST_PERCENT: Final = 5
MOST_PERCENT: Final = 50


def batch_size(capacity: Document, copies: int) -> int:
    """Return the copies of one batch; a single copy is a batch of its own, and without copies any batch will do.

    Raises:
        ApiError: ValidationException, the batch is less than 5 % or more than 50 % of the copies.
    """
    value = whole(capacity, "Value")
    in_copies = text(capacity, "Type") == "COPY_COUNT"
    percent = 100 * value / max(copies, 1) if in_copies else float(value)
    lone = copies == 0 or (copies == 1 and (value == 1 or not in_copies))
    if not lone and not LEAST_PERCENT <= percent <= MOST_PERCENT:
        raise invalid(
            f"MaximumBatchSize must be from {LEAST_PERCENT} % to {MOST_PERCENT} % of the copies of the inference "
            f"component: {value}{'' if in_copies else ' %'} of {copies}."
        )
    return value if in_copies else max(1, math.floor(copies * value / 100))


def rollback_batch_size(policy: Document, copies: int) -> int:
    """Return the copies of one batch of the rollback; all of them when the policy doesn't say."""
    capacity = policy.get("RollbackMaximumBatchSize")
    if not isinstance(capacity, dict):
        return max(copies, 1)
    value = whole(capacity, "Value")
    if text(capacity, "Type") == "COPY_COUNT":
        return value
    return max(1, math.floor(copies * value / 100))
