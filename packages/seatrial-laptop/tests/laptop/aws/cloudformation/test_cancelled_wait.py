from __future__ import annotations

import json
import time
from typing import Any

from seatrial_laptop.aws.cloudformation.stacks_in_progress import CancellableWait
from tests.waiting import until

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
ANSWERS_UNLESS_SLOW = """
import json, urllib.request
def handler(event, context):
    if event["ResourceProperties"]["Pace"] == "slow":
        return
    told = {"Status": "SUCCESS", "PhysicalResourceId": "one", "Data": {}}
    ask = urllib.request.Request(event["ResponseURL"], data=json.dumps(told).encode(), method="PUT")
    urllib.request.urlopen(ask)
"""


def test_a_wait_ends_with_its_answer_with_the_cancel_or_with_its_time() -> None:
    answered = CancellableWait(lambda: False, lambda: None, time.time)
    answered.set()
    assert answered.wait(5) is True

    def cancel() -> None:
        cancelled.set()

    cancelled = CancellableWait(lambda: True, cancel, time.time)
    assert cancelled.wait(5) is True

    assert CancellableWait(lambda: False, lambda: None, time.time).wait(0.01) is False


def test_minutes_that_are_skipped_count_for_the_patience_of_cloudformation() -> None:
    dates_s = iter([0.0, 0.0, 0.0, 3_000.0, 3_000.0, 3_600.0, 3_600.0])
    assert CancellableWait(lambda: False, lambda: None, lambda: next(dates_s)).wait(3_600) is False


def template(pace: str) -> str:
    function = {
        "Type": "AWS::Lambda::Function",
        "Properties": {
            "Runtime": "python3.11",
            "Handler": "index.handler",
            "Role": ROLE,
            "Code": {"ZipFile": ANSWERS_UNLESS_SLOW},
        },
    }
    custom = {
        "Type": "Custom::Trial",
        "Properties": {"ServiceToken": {"Fn::GetAtt": ["Function", "Arn"]}, "Pace": pace},
    }
    return json.dumps({"Resources": {"Function": function, "Trial": custom}})


def status_of(laptop: Laptop, stack: str) -> str:
    return str(laptop.cloudformation.describe_stacks(StackName=stack)["Stacks"][0]["StackStatus"])


def names(laptop: Laptop) -> list[str]:
    return [entry["StackName"] for entry in laptop.cloudformation.describe_stacks()["Stacks"]]


def waits(laptop: Laptop, stack: str) -> bool:
    listed = laptop.cloudformation.list_stack_resources(StackName=stack)["StackResourceSummaries"]
    return ("Trial", "UPDATE_IN_PROGRESS") in {(each["LogicalResourceId"], each["ResourceStatus"]) for each in listed}


def test_a_cancelled_update_interrupts_the_resource_and_sends_back_its_old_properties(laptop: Laptop) -> None:
    stack = laptop.name("cancelled")
    laptop.cloudformation.create_stack(StackName=stack, TemplateBody=template("quick"))
    until(lambda: not status_of(laptop, stack).endswith("PROGRESS"), stack)
    assert status_of(laptop, stack) == "CREATE_COMPLETE"

    laptop.cloudformation.update_stack(StackName=stack, TemplateBody=template("slow"))
    until(lambda: waits(laptop, stack), stack)
    laptop.cloudformation.cancel_update_stack(StackName=stack)
    until(lambda: not status_of(laptop, stack).endswith("PROGRESS"), stack)
    assert status_of(laptop, stack) == "UPDATE_ROLLBACK_COMPLETE"
    events = laptop.cloudformation.describe_stack_events(StackName=stack)["StackEvents"]
    failed = [
        (event["LogicalResourceId"], event["ResourceStatusReason"])
        for event in events
        if event["ResourceStatus"].endswith("_FAILED")
    ]
    assert failed == [("Trial", "Resource update cancelled")]
    laptop.cloudformation.delete_stack(StackName=stack)
    until(lambda: stack not in names(laptop), stack)
