"""How large the volume of an instance without a local disk is."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision
from seatrial_base.units import GIB, counted, gib

if TYPE_CHECKING:
    from seatrial_base.catalog.instances import Instance

SMALLEST_GB, LARGEST_GB = 30, 512  # 30 is the size that the service gives by itself; 512 is the API's bound
_IMAGE_GB = 30  # an assumption, large on purpose: an image unpacked, and what the compiler caches
_STEP_GB = 10


def decide_volume(instance: Instance, weights_bytes: int, copies_per_instance: int) -> Decision[int] | None:
    """Return the size of an instance's volume, in GiB (the API's `VolumeSizeInGB`).

    `None` for an instance type with local NVMe, where the service puts everything, and refuses a volume size.
    """
    if instance.nvme_gb:
        return None
    wanted = 2 * weights_bytes * copies_per_instance / GIB + _IMAGE_GB
    size = min(max(SMALLEST_GB, math.ceil(wanted / _STEP_GB) * _STEP_GB), LARGEST_GB)
    copies = counted(copies_per_instance, "copy", "copies")
    because = (
        f"{instance.instance_type} has no local disk: twice {gib(weights_bytes)} of weights for {copies}, and "
        f"{_IMAGE_GB} GiB for the image (assumed); {SMALLEST_GB} to {LARGEST_GB}."
    )
    return Decision(value=size, because=because)
