from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial_load.health.client_health import ThreadSample, UsageMeter, run_delay_s

if TYPE_CHECKING:
    from pathlib import Path


def test_shares_are_between_the_samples_nearest_outside() -> None:
    meter = UsageMeter(
        [
            ThreadSample(10.0, 1.0, 0.0),
            ThreadSample(11.0, 1.5, 0.1),
            ThreadSample(12.0, 2.5, 0.3),
            ThreadSample(13.0, 2.6, 0.3),
        ]
    )
    assert list(meter.shares(10.0, 11.9)) == pytest.approx([0.75, 0.15])
    assert list(meter.shares(11.5, 13.0)) == pytest.approx([0.55, 0.1])
    assert meter.cpu_s == pytest.approx(1.6)


@pytest.mark.parametrize(("since_s", "until_s"), [(10.0, 10.0), (11.0, 10.0), (10.0, 10.2)])
def test_too_short_a_time_has_no_share(since_s: float, until_s: float) -> None:
    meter = UsageMeter([ThreadSample(10.0, 1.0, 0.0), ThreadSample(10.2, 1.2, 0.0)])
    assert meter.shares(since_s, until_s) == (None, None)
    assert UsageMeter().shares(since_s, until_s) == (None, None)
    assert UsageMeter().cpu_s == 0.0


def test_where_the_kernel_tells_no_run_delay_there_is_none() -> None:
    meter = UsageMeter([ThreadSample(10.0, 1.0, None), ThreadSample(11.0, 1.5, None)])
    assert meter.shares(10.0, 11.0) == (0.5, None)
    assert run_delay_s("/nowhere") is None


@pytest.mark.parametrize(("text", "delay_s"), [("5 2500000000 7\n", 2.5), ("nonsense", None), ("", None)])
def test_the_kernels_file(tmp_path: Path, text: str, delay_s: float | None) -> None:
    (tmp_path / "schedstat").write_text(text)
    assert run_delay_s(str(tmp_path / "schedstat")) == delay_s


def test_a_busy_thread_shows() -> None:
    meter = UsageMeter()
    meter.sample(0.0)
    while (meter.samples[-1].cpu_s - meter.samples[0].cpu_s) < 0.02:
        meter.sample(1.0)
    share, _ = meter.shares(0.0, 1.0)
    assert share is not None
    assert share < 0.1
    assert meter.cpu_s >= 0.02
