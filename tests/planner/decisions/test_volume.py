"""Volumes of instances without a local disk; the service refuses a size for the others."""

from __future__ import annotations

import pytest

from seatrial.planner.planner import decide_volume
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.units import GIB


@pytest.mark.parametrize(
    ("weights_gib", "copies", "size_gb"),
    [
        (0.1, 1, 40),  # 2 x 0.1 + 30, up to the next ten
        (10, 1, 50),  # 2 x 10 + 30
        (10.1, 1, 60),
        (10, 3, 90),  # 2 x 10 x 3 + 30
        (140, 1, 310),
        (240.9, 1, 512),  # 511.8, and 512 is the most
        (800, 1, 512),
    ],
)
def test_twice_the_weights_of_its_copies_and_the_image(weights_gib: float, copies: int, size_gb: int) -> None:
    instance = find_instance("ml.inf2.48xlarge")
    assert instance is not None
    volume = decide_volume(instance, int(weights_gib * GIB), copies)
    assert volume is not None
    assert volume.value == size_gb
    assert "ml.inf2.48xlarge has no local disk" in volume.because


def test_only_what_has_no_disk_gets_a_volume() -> None:
    sized = {each.instance_type for each in INSTANCES.rows if decide_volume(each, GIB, 1) is not None}
    assert sized == {f"ml.inf2.{size}" for size in ("xlarge", "8xlarge", "24xlarge", "48xlarge")}
