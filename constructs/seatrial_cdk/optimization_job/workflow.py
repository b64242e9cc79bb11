"""An optimization job as a state machine: create it, then look again and again until it has ended.

Create ─▶ Wait ─▶ Poll ─▶ Wait ─▶ … ─▶ Poll ─▶ Ended
"""

from __future__ import annotations

from typing import Final

LONGEST_WORKFLOW_S: Final = 7 * 86_400
"""Five days of the longest job, and two in which it may wait for an instance."""


def definition(function_arn: str) -> dict[str, object]:
    """Return the state machine in the Amazon States Language.

    A creation that is refused is tried again for some minutes: a new role is not known everywhere at once. A look that
    fails is made again an hour long: the job goes on meanwhile.

    Args:
        function_arn: The function of every step.
    """
    refused = [{"ErrorEquals": ["States.ALL"], "ResultPath": "$.Failure", "Next": "Refused"}]
    choices = [{"Variable": "$.Next", "StringEquals": "wait", "Next": "Wait"}]
    states: dict[str, object] = {
        "Create": {**_step("create", function_arn, attempts=5), "Catch": refused, "Next": "Wait"},
        "Wait": {"Type": "Wait", "SecondsPath": "$.Seconds", "Next": "Poll"},
        "Poll": {**_step("poll", function_arn, attempts=8), "Next": "HasEnded"},
        "HasEnded": {"Type": "Choice", "Choices": choices, "Default": "Ended"},
        "Refused": {**_step("refused", function_arn, attempts=3, failure=True), "Next": "Ended"},
        "Ended": {"Type": "Succeed"},
    }
    return {"StartAt": "Create", "TimeoutSeconds": LONGEST_WORKFLOW_S, "States": states}


def _step(name: str, function_arn: str, *, attempts: int, failure: bool = False) -> dict[str, object]:
    told = {"Failure.$": "$.Failure"} if failure else {}
    return {
        "Type": "Task",
        "Resource": function_arn,
        "Parameters": {"Step": name, "Order.$": "$.Order", **told},
        "Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 10, "MaxAttempts": attempts, "BackoffRate": 2}],
    }
