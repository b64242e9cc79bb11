"""A trial that is asked for by hand: what the service is told, and what its answers mean."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from botocore.exceptions import ClientError

from seatrial.account.trials import start_trial
from seatrial_base.errors import BenchError

ANSWER: dict[str, object] = {"Started": True, "RequestId": "scheduled-7", "Because": ""}


@dataclass
class Function:
    """The trial service's function; it answers as it is told to."""

    answer: object = field(default_factory=lambda: dict(ANSWER))
    failed: dict[str, str] = field(default_factory=dict)
    refused: Exception | None = None
    asked: list[tuple[str, object]] = field(default_factory=list)
    exceptions: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(ClientError=ClientError))

    def invoke(self, *, FunctionName: str, Payload: bytes) -> dict[str, object]:  # noqa: N803
        if self.refused is not None:
            raise self.refused
        self.asked.append((FunctionName, json.loads(Payload)))
        return {"Payload": io.BytesIO(json.dumps(self.answer).encode()), **self.failed}


def started(function: Function, generation: int = 1) -> str:
    return start_trial(cast("Any", function), "dev", "chat", generation, "7")


def test_the_service_is_told_which_endpoint() -> None:
    function = Function()
    assert started(function, generation=2) == "scheduled-7"
    call = {
        "EndpointName": "dev-chat-2",
        "InferenceComponentName": "dev-chat-2-model",
        "StackId": "seatrial-dev-chat",
        "Id": "7",
    }
    assert function.asked == [("seatrial-dev-trials", {"Scheduled": call})]


GONE = ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "no such function"}}, "Invoke")


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (Function(answer={**ANSWER, "Started": False, "Because": "its stack is UPDATE_IN_PROGRESS"}), "UPDATE_IN_PROG"),
        (Function(answer={"errorMessage": "throttled"}, failed={"FunctionError": "Unhandled"}), "failed: throttled"),
        (Function(answer=None), "the trial service failed: null"),
        (Function(refused=GONE), "no such function"),
    ],
)
def test_what_can_not_be_started_says_why(function: Function, message: str) -> None:
    with pytest.raises(BenchError, match=f"dev-chat: SEA479: .*{message}"):
        started(function)
