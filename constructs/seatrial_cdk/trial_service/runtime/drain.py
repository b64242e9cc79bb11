"""The end of an endpoint that another one replaced: it goes once its last requests have ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial_cdk.trial_service.runtime.log import log
from seatrial_cdk.trial_service.runtime.store import UnavailableError

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings

QUIET_S: Final = 60.0
"""Without a request for so long, nobody uses the endpoint: clients look at the alias again after 30 s."""
LONGEST_DRAIN_S: Final = 600.0
LOOK_S: Final = 10.0
ANSWER_S: Final = 30.0
"""Of the function's time, for the answer."""


def drain(component: str, around: Surroundings) -> None:
    """Wait until a component has had no request for a minute, ten minutes at most.

    A component whose metric can't be read is waited for a minute.
    """
    until_s = min(around.now_s() + LONGEST_DRAIN_S, around.ends_s - ANSWER_S)
    around.sleep(QUIET_S)
    while around.now_s() < until_s:
        try:
            busy = around.requests_since(component, around.now_s() - QUIET_S)
        except UnavailableError as unavailable:
            log(f"the requests of {component} are unknown: {unavailable}")
            return
        if not busy:
            return
        around.sleep(LOOK_S)
    log(f"{component} is deleted though it still has requests")
