"""The course of a trial as a state machine: begin, then level by level, then conclude, then answer CloudFormation.

    Begin ─▶ Choose ─▶ Load ─▶ Absorb ─▶ Choose ─▶ … ─▶ Conclude ─▶ Answer

What the steps tell each other lies in the results bucket; the states carry keys and numbers, never a result and never
CloudFormation's response URL.
"""

from __future__ import annotations

from typing import Final

STEPS: Final = ("Begin", "Choose", "Absorb", "Conclude", "Abandon", "Settle", "Answer")

NOT_STARTED: Final = ("Lambda.TooManyRequestsException",)
"""Refusals after which nothing has run: the only ones after which a share of the load is asked for again.

The account runs as many functions as it may at a time, other endpoints' trials among them.
"""

DEAD: Final = (
    "Lambda.ServiceException",
    "Lambda.AWSLambdaException",
    "Lambda.SdkClientException",
    "Lambda.Unknown",
    "Runtime.ExitError",
    "Runtime.HandlerError",
    "Sandbox.Timedout",
    "States.Timeout",
    "UnavailableError",
)
"""After which a step is done again: its function died, or a call of AWS inside it failed.

The embedded AWS calls a function that died `Runtime.HandlerError`.
"""

RETRIES: Final[dict[str, object]] = {
    "IntervalSeconds": 5,
    "MaxAttempts": 10,
    "BackoffRate": 1.5,
    "MaxDelaySeconds": 30,
    "JitterStrategy": "FULL",
}
"""Of a step that found no free function: up to 3.5 minutes, as other trials' levels take."""
SHARE_RETRIES: Final[dict[str, object]] = {**RETRIES, "IntervalSeconds": 2, "MaxAttempts": 8, "MaxDelaySeconds": 10}
"""Of a share, up to a minute: `steps.LONGEST_BARRIER_S`, after which it is late anyway."""

MOST_SHARES: Final = 40
"""Iterations of an inline map at a time (AWS Step Functions developer guide, inline mode)."""

LONGEST_WORKFLOW_S: Final = 3480
"""The longest budget is 50 minutes, and CloudFormation waits an hour: two minutes are for who ends a hung workflow."""


def definition(function_arn: str) -> dict[str, object]:
    """Return the state machine in the Amazon States Language.

    A share whose function dies fails alone: the map waits for the others, so that no load goes on when the level is
    loaded again. Whatever else fails leads to `Abandon`, which writes why; when even the answer fails, the execution
    does, and an EventBridge rule calls the function for it.
    """
    states: dict[str, object] = {name: _step(name, function_arn, following) for name, following in _FOLLOWING.items()}
    states["Next"] = {
        "Type": "Choice",
        "Choices": [
            {"Variable": "$.Next", "StringEquals": value, "Next": state}
            for value, state in (
                ("wait", "Wait"),
                ("choose", "Choose"),
                ("load", "Load"),
                ("conclude", "Conclude"),
                ("settle", "Settle"),
                ("pause", "Pause"),
            )
        ],
        "Default": "Answer",
    }
    states["Wait"] = {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Begin"}
    states["Pause"] = {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Settle"}
    states["Load"] = _load(function_arn)
    return {"StartAt": "Begin", "TimeoutSeconds": LONGEST_WORKFLOW_S, "States": states}


_FOLLOWING: Final = {
    "Begin": "Next",
    "Choose": "Next",
    "Absorb": "Next",
    "Conclude": "Next",
    "Abandon": "Next",
    "Settle": "Next",
    "Answer": None,
}


def _step(name: str, function_arn: str, following: str | None) -> dict[str, object]:
    step: dict[str, object] = {
        "Type": "Task",
        "Resource": function_arn,
        "Parameters": {"Step": name.lower(), "Order.$": "$$.Execution.Input", "Position.$": "$"},
        "Retry": [
            {"ErrorEquals": list(NOT_STARTED), **RETRIES},
            {"ErrorEquals": list(DEAD), "IntervalSeconds": 2, "MaxAttempts": 3, "BackoffRate": 2},
        ],
    }
    if name not in {"Abandon", "Settle", "Answer"}:
        step["Catch"] = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Abandon"}]
    return {**step, "End": True} if following is None else {**step, "Next": following}


def _load(function_arn: str) -> dict[str, object]:
    """Return the load: every share at once; what becomes of each is told to `Absorb`."""
    share = {
        "Type": "Task",
        "Resource": function_arn,
        "Retry": [{"ErrorEquals": list(NOT_STARTED), **SHARE_RETRIES}],
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Died"}],
        "End": True,
    }
    return {
        "Type": "Map",
        "ItemsPath": "$.Shares",
        "ItemSelector": {"Order.$": "$$.Execution.Input", "Share.$": "$$.Map.Item.Value"},
        "MaxConcurrency": MOST_SHARES,
        "ItemProcessor": {
            "ProcessorConfig": {"Mode": "INLINE"},
            "StartAt": "Share",
            "States": {"Share": share, "Died": {"Type": "Pass", "End": True}},
        },
        "ResultPath": "$.Loaded",
        "Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Abandon"}],
        "Next": "Absorb",
    }
