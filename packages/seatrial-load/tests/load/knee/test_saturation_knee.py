from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.documents.distribution import Interval
from seatrial_load.knee import gate_knee, saturation_knee

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_load.documents.result import LevelResult

    MakeLevel = Callable[..., LevelResult]


def full_from(level: MakeLevel, full: int) -> list[LevelResult]:
    """An endpoint of 10 tok/s a stream, which batches `full` requests."""
    return [level(2**power, output_tok_s=10.0 * min(2**power, full)) for power in range(8)]


def test_the_reason_names_throughput_and_filling_load(level: MakeLevel) -> None:
    knee = saturation_knee(full_from(level, 16))
    assert knee.concurrency == pytest.approx(48.0, rel=0.02)
    assert knee.because == (
        "3 x 16 per copy, which give the highest throughput (160.0 tok/s, measured at 16 per copy) at unloaded latency"
    )


def test_it_is_at_most_the_batch_limit_of_the_plan(level: MakeLevel) -> None:
    knee = saturation_knee(full_from(level, 16), batch_limit=16)
    assert knee.concurrency == 16.0
    assert knee.because.startswith("batch limit of one copy, 16; 3 x 16")


def test_growing_throughput_has_its_knee_at_the_highest_level(level: MakeLevel) -> None:
    knee = saturation_knee([level(load, output_tok_s=10.0 * load) for load in (1, 2, 4)])
    assert knee.concurrency == 4.0
    assert knee.because == "throughput grows with the load up to 4 per copy, the highest level without an error"


def test_the_interval_of_throughput_that_still_grows_has_no_upper_end(level: MakeLevel) -> None:
    def at(load: int, **fields: object) -> LevelResult:
        interval = Interval(low=9.8 * load, high=10.2 * load)
        return level(load, output_tok_s=10.0 * load, output_tok_s_interval=interval, **fields)

    growing = [at(load) for load in (1, 2, 4)]
    open_end, closed = (saturation_knee(each).interval for each in (growing, [*growing, at(8, succeeded=7)]))
    assert open_end is not None
    assert open_end.high is None
    assert closed is not None
    assert closed.high == 4.0  # a higher level was measured, and had errors


def test_levels_with_errors_do_not_count(level: MakeLevel) -> None:
    levels = [level(load, output_tok_s=10.0 * load) for load in (1, 2, 4)]
    assert saturation_knee([*levels, level(8, output_tok_s=400.0, succeeded=7)]).concurrency == 4.0


def test_where_throughput_falls_below_the_gate_copies_get_a_share_of_that_load(level: MakeLevel) -> None:
    falling = [level(load, output_tok_s=speed) for load, speed in ((1, 600.0), (2, 1_089.0), (4, 900.0), (8, 600.0))]
    assert gate_knee(falling, 2).concurrency == 2.0
    whole, share = gate_knee(falling, 8), gate_knee(falling, 8, utilization=0.8)
    assert whole.concurrency == saturation_knee(falling).concurrency
    assert whole.because == "throughput falls below 90% of its highest from 2.8 per copy; less than the gate of 8"
    assert share.concurrency == 0.8 * (whole.concurrency or 0.0)
    assert share.because == (
        "throughput falls below 90% of its highest from 2.8 per copy; 80% of it are less than the gate of 8"
    )
    assert saturation_knee(falling).because == "throughput falls below 90% of its highest from 2.8 per copy"


def test_the_gate_gives_way_by_degrees(level: MakeLevel) -> None:
    """A gate beside the load from which throughput falls isn't a matter of all or nothing: noise would decide."""
    falling = [level(load, output_tok_s=speed) for load, speed in ((1, 600.0), (2, 1_089.0), (4, 900.0), (8, 600.0))]
    falls_from = saturation_knee(falling).concurrency or 0.0
    for gate in (2, 3):
        assert gate_knee(falling, gate, utilization=1.0).concurrency == min(gate, falls_from)
