"""The embedded AWS in a hurry: virtual time runs fast for one test, and no fault outlives it.

`stub_cloud` has no server: its copies are processes that only wait, behind one port that a test may serve.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seatrial_laptop.control import change_control, reset_control
from tests.stub_cloud import StubSageMaker, stub_sagemaker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture
def control(laptop: Any) -> Iterator[Callable[..., dict[str, object]]]:  # noqa: ANN401 (the fixture of the folder above)
    """Return a function that changes settings of the control interface."""

    def change(**settings: object) -> dict[str, object]:
        return change_control(laptop.state_dir, settings)

    yield change
    reset_control(laptop.state_dir)


@pytest.fixture
def stub(tmp_path: Path) -> Iterator[StubSageMaker]:
    """Return an embedded SageMaker without a server; its clock runs at 600 virtual seconds per second."""
    made = stub_sagemaker(tmp_path)
    made.cloud.clock.set_speed(600)
    yield made
    made.running.close()
