"""Over how many accelerators one copy can be sharded."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog.architecture import shards_evenly

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture

_POWERS_OF_TWO = (1, 2, 4, 8, 16)


def possible_degrees(architecture: Architecture, accelerators: int) -> tuple[int, ...]:
    """Return the tensor parallel degrees worth considering: powers of two and the whole instance."""
    tried = {degree for degree in (*_POWERS_OF_TWO, accelerators) if degree <= accelerators}
    return tuple(sorted(degree for degree in tried if shards_evenly(architecture, degree)))
