"""What the state machine says to a fleet's functions, and what they say back: keys and numbers, never a result."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NotRequired, TypeAlias, TypedDict

if TYPE_CHECKING:
    from seatrial_cdk.smoke_benchmark.runtime.custom_resource import TrialOrder


Following: TypeAlias = Literal["choose", "load", "conclude", "leave"]


class Share(TypedDict):
    """Which share one worker loads."""

    Round: int
    Worker: int


class WorkerCall(TypedDict):
    """One call of a worker: the run's order, and which share is to be loaded."""

    Order: TrialOrder
    Share: Share


class Failure(TypedDict):
    """What AWS Step Functions says of a state that failed; a function's `Cause` is its error as JSON."""

    Error: str
    Cause: NotRequired[str]


class Position(TypedDict):
    """Where the trial is, and what comes next: an answer, and what the next step is told.

    Attributes:
        Next: The state machine's next state; `leave` where another run has the trial.
        Round: The round's number.
        Because: Why this is next, for whoever reads the execution's history.
        Shares: Before a load, one for each worker.
        BarrierSeconds: How long the workers have or had until they begin together; absent it is the usual time.
    """

    Next: Following
    Round: int
    Because: str
    Shares: NotRequired[list[Share]]
    BarrierSeconds: NotRequired[float]


class StepCall(TypedDict):
    """One call of a step: which, the run's order, and where the trial is, or what failed."""

    Step: Literal["begin", "choose", "absorb", "conclude", "abandon"]
    Order: TrialOrder
    Position: NotRequired[Position]
    Failure: NotRequired[Failure]


def position(following: Following, number: int, because: str) -> Position:
    """Return where the trial is when nothing is to be loaded."""
    return {"Next": following, "Round": number, "Because": because}
