"""A small interpreter of the trial's state machine: the real definition, with a clock of its own and no AWS."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.trial_service import definition

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.context import TrialContext
    from seatrial_cdk.trials.runtime.handler import Event

    State = dict[str, Any]

MOST_STATES = 600


class DiedError(Exception):
    """A function died; the message is the error's name as AWS Step Functions tells it."""


class FailedError(Exception):
    """The execution failed."""


@dataclass
class Machine:
    """Executes trials.

    Attributes:
        around: What the function works with.
        wait: Lets time pass.
        before: Called with the name of each function's state before it runs; it may raise a DiedError.
        entered: The states that were entered.
    """

    context: TrialContext
    wait: Callable[[float], None]
    before: Callable[[str], None] = field(default=lambda _: None)
    entered: list[str] = field(default_factory=list)

    def execute(self, endpoint_name: str = "dev-chat", request_id: str = "request-1") -> None:
        """Run one execution to its end.

        Raises:
            FailedError: It failed.
        """
        states: dict[str, State] = cast("dict[str, dict[str, State]]", definition("function"))["States"]
        order = {"EndpointName": endpoint_name, "RequestId": request_id}
        name: str | None = "Begin"
        told: Any = order
        while name is not None:
            assert len(self.entered) < MOST_STATES, self.entered
            if name != "Next":
                self.entered.append(name)
            name, told = self._entered(states[name], name, told, order)

    def _entered(self, state: State, name: str, told: Any, order: Any) -> tuple[str | None, Any]:  # noqa: ANN401 (JSON)
        match state["Type"]:
            case "Choice":
                for choice in state["Choices"]:
                    if told["Next"] == choice["StringEquals"]:
                        return choice["Next"], told
                return state["Default"], told
            case "Wait":
                self.wait(told["Seconds"])
                return state["Next"], told
            case "Map":
                return state["Next"], {**told, "Loaded": [self._share(state, share, order) for share in told["Shares"]]}
        assert state["Parameters"]["Order.$"] == "$$.Execution.Input"
        assert state["Parameters"]["Position.$"] == "$"
        call = {"Step": state["Parameters"]["Step"], "Order": order, "Position": told}
        return self._task(state, name, call, told)

    def _share(self, state: State, share: Any, order: Any) -> Any:  # noqa: ANN401 (JSON)
        child = state["ItemProcessor"]["States"]["Share"]
        _, answer = self._task(child, "Share", {"Order": order, "Share": share}, share)
        return answer

    def _task(self, state: State, name: str, call: State, told: Any) -> tuple[str | None, Any]:  # noqa: ANN401 (JSON)
        tries: dict[int, int] = {}  # each retrier counts its own
        while True:
            try:
                self.before(name)
                answer = dispatch(cast("Event", json.loads(json.dumps(call))), self.context)
            except Exception as error:
                failure = _failure(error)
                retry = next(
                    (n for n, one in enumerate(state["Retry"]) if failure["Error"] in one["ErrorEquals"]), None
                )
                if retry is not None and tries.get(retry, 0) < state["Retry"][retry]["MaxAttempts"]:
                    tries[retry] = tries.get(retry, 0) + 1
                    continue
                if "Catch" not in state:
                    raise FailedError(failure["Cause"]) from error
                (catch,) = state["Catch"]
                return catch["Next"], {**told, "Failure": failure}
            return state.get("Next"), json.loads(json.dumps(answer))


def _failure(error: Exception) -> dict[str, str]:
    """Return what AWS Step Functions makes of a Lambda function's error."""
    if isinstance(error, DiedError):
        return {"Error": str(error), "Cause": "the function ended"}
    told = {"errorType": type(error).__name__, "errorMessage": str(error)}
    return {"Error": told["errorType"], "Cause": json.dumps(told)}
