"""Which regions have inference components."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from seatrial_base.catalog.rows import read_rows

INFERENCE_COMPONENT = "AWS::SageMaker::InferenceComponent"


@dataclass(frozen=True, slots=True)
class Availability:
    """The regions of one CloudFormation resource type.

    Attributes:
        resource_type: Its name.
        regions: The regions that have it, sorted.
        source: Where they were read.
        date: When.
    """

    resource_type: str
    regions: tuple[str, ...]
    source: str
    date: str


@cache
def availability(resource_type: str = INFERENCE_COMPONENT) -> Availability:
    """Return the regions of a resource type of the catalog."""
    rows = read_rows("regions.json", Availability)
    return next(row for row in rows if row.resource_type == resource_type)
