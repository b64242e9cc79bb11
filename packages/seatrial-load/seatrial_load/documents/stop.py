"""Reasons for which a trial measures no further level, or a level is void: an enum to branch on, and a text."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum, unique


@unique
class StopReason(StrEnum):
    """Why no further level is measured."""

    ALL_MEASURED = "all_measured"  # every requested level or rate
    GOAL_KNOWN = "goal_known"  # the search knows its goal well enough
    NO_SUCCESS = "no_success"  # no request succeeded, so more load is of no use
    CLIENT_LIMIT = "client_limit"  # the client was the limit, more than once
    FALLING = "falling"  # throughput fell and the SLO was missed, twice in a row
    REQUEST_TIMEOUT = "request_timeout"  # a request hit the time limit that ends this protocol
    BUDGET = "budget"  # the trial's time or money is over, or too short for the next level
    RUN_TOO_SHORT = "run_too_short"  # one run or function ends before the level does
    LOAD_FAILED = "load_failed"  # processes of the load failed
    CANCELLED = "cancelled"  # the trial is not requested any more
    AT_ZERO = "at_zero"  # no copy serves, and none came
    UNKNOWN_STATE = "unknown_state"  # the control plane doesn't report whether a copy serves
    COMPONENT_FAILED = "component_failed"  # the inference component is in state Failed
    VERIFIED = "verified"  # single requests were sent, and no load was requested
    NO_KNEE_SOUGHT = "no_knee_sought"  # the load alongside users' requests reached what they leave of the gate
    ALARM = "alarm"  # an alarm of the endpoint is in ALARM while load is added alongside users' requests
    USERS_SLO = "users_slo"  # the users' own requests miss the SLO meanwhile
    UNWATCHED = "unwatched"  # the users' requests can't be observed

    @property
    def is_unverified(self) -> bool:
        """Whether nothing is known of the deployment: no copy served, or its state is unknown."""
        return self in {StopReason.AT_ZERO, StopReason.UNKNOWN_STATE}

    @property
    def is_guarded(self) -> bool:
        """Whether the watch over the users' requests stopped the trial."""
        return self.is_harm or self == StopReason.UNWATCHED

    @property
    def is_harm(self) -> bool:
        """Whether the users' requests suffered while the trial added load."""
        return self in {StopReason.ALARM, StopReason.USERS_SLO}


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Measure no further level.

    Attributes:
        reason: For programs.
        because: For users, with its numbers.
    """

    reason: StopReason
    because: str


@unique
class VoidReason(StrEnum):
    """The client's limit that a level met instead of the endpoint's."""

    READ_LATE = "read_late"  # bytes waited for the client
    TOO_FEW_IN_FLIGHT = "too_few_in_flight"  # streams waited for the client to send
    CPU = "cpu"  # its busiest process was near a whole core
    CONNECTIONS = "connections"  # an open loop found every connection taken
    SENT_LATE = "sent_late"  # an open loop's requests left late


@dataclass(frozen=True, slots=True, kw_only=True)
class Void:
    """A level measures the client instead of the endpoint.

    Attributes:
        reasons: What limited it, at least one.
        because: The same in words, with its numbers and a remedy.
    """

    reasons: tuple[VoidReason, ...]
    because: str
