from __future__ import annotations

import pytest

from seatrial_load.health.client_health import LagMeter


def test_without_reads_nothing_is_known() -> None:
    meter = LagMeter()
    meter.note(1.0, 1.5, 0, waited=True)
    assert (meter.reads, meter.percentile_ms(0.99)) == (0, None)


def test_what_a_waiting_poll_returned_is_late_by_its_own_turn_only() -> None:
    meter = LagMeter()
    meter.note(1.000, 1.004, 1, waited=True)
    meter.note(5.000, 5.004, 1, waited=True)
    assert meter.percentile_ms(0.99) == pytest.approx(4.0, rel=0.045)


def test_what_was_there_without_waiting_may_have_come_since_the_poll_before() -> None:
    meter = LagMeter()
    meter.note(1.000, 1.010, 1, waited=True)
    meter.note(1.010, 1.012, 1, waited=False)
    assert meter.percentile_ms(1.0) == pytest.approx(12.0, rel=0.045)


def test_the_very_first_poll_has_none_before_it() -> None:
    meter = LagMeter()
    meter.note(1000.0, 1000.001, 1, waited=False)
    assert meter.percentile_ms(1.0) == pytest.approx(1.0, rel=0.045)


def test_the_reads_of_a_turn_are_spread_over_it() -> None:
    meter = LagMeter()
    meter.note(1.0, 1.008, 8, waited=True)
    assert meter.reads == 8
    assert meter.percentile_ms(0.25) == pytest.approx(2.0, rel=0.045)
    assert meter.percentile_ms(1.0) == pytest.approx(8.0, rel=0.045)


def test_one_late_read_in_two_hundred_is_beyond_the_p99() -> None:
    meter = LagMeter()
    for turn in range(199):
        meter.note(float(turn), turn + 0.0001, 1, waited=True)
    meter.note(500.0, 500.9, 1, waited=True)
    assert meter.percentile_ms(0.99) == pytest.approx(0.1, rel=0.045)
    assert meter.percentile_ms(1.0) == pytest.approx(900.0, rel=0.045)
