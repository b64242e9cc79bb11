from __future__ import annotations

import pytest

from seatrial.planner.decisions.timeouts import download_timeout, startup_timeout_s, timeout_warnings
from seatrial.specs.endpoint import ModelSpec
from seatrial_base.units import GB

HUB = ModelSpec(hub_id="a/b")
S3 = ModelSpec(s3_uri="s3://weights/b/")


@pytest.mark.parametrize(
    ("model", "gigabytes", "download_s", "startup_s"),
    [
        (HUB, 14, 600, 600),  # 300 + 14/0.5 + 14/0.1 = 468
        (HUB, 80, 600, 1_260),  # 300 + 160 + 800
        (S3, 14, 600, 600),
        (S3, 140, 1_440, 600),  # 2 x 140/0.2 = 1,400
        (S3, 360, 3_600, 1_020),
        (HUB, 275, 600, 3_600),
    ],
)
def test_both_follow_from_the_weights_and_their_source(
    model: ModelSpec, gigabytes: int, download_s: int, startup_s: int
) -> None:
    assert download_timeout(model, gigabytes * GB).value == download_s
    assert startup_timeout_s(model, gigabytes * GB).value == startup_s


def test_the_bound_of_the_service_is_kept_and_warned_of() -> None:
    startup = startup_timeout_s(HUB, 810 * GB)

    assert startup.value == 3_600
    assert timeout_warnings(startup, download_timeout(HUB, 810 * GB)) == (
        "Assumed: 300 s engine start, loading 754.4 GiB at 500 MB/s, download from the hub at 100 MB/s: 10,020 s, "
        "above SageMaker's maximum of 3,600 s. The start may time out: stage the weights in S3, whose download has a "
        "timeout of its own (`seatrial stage`).",
    )
