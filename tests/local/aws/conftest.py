"""The embedded AWS in a hurry: virtual time runs fast for one test, and no fault outlives it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from seatrial.local.control import change_control, reset_control

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


@pytest.fixture
def control(laptop: Any) -> Iterator[Callable[..., dict[str, object]]]:  # noqa: ANN401 (the fixture of the folder above)
    """Return a function that changes settings of the control interface."""

    def change(**settings: object) -> dict[str, object]:
        return change_control(laptop.state_dir, settings)

    yield change
    reset_control(laptop.state_dir)
