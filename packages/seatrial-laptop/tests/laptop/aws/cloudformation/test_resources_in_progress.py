"""What a stack lists of its resources while CloudFormation is at work on it."""

from __future__ import annotations

import pytest

from seatrial_laptop.aws.cloudformation.stacks_in_progress import with_those_in_progress

WORKS = "CREATE_IN_PROGRESS"
STACK = "arn:aws:cloudformation:us-east-1:000000000000:stack/one/1"
DONE = {
    "LogicalResourceId": "Trial",
    "PhysicalResourceId": "trial-1",
    "ResourceType": "Custom::Trial",
    "ResourceStatus": "CREATE_COMPLETE",
    "Timestamp": "before",
    "Properties": {"Pace": "quick"},
}


def event(name: str, status: str, *, physical_id: str = "") -> dict[str, object]:
    told = {"LogicalResourceId": name, "PhysicalResourceId": physical_id, "ResourceStatus": status}
    return {"StackId": STACK, "ResourceType": "Custom::Trial", "Timestamp": "now", **told}


def test_what_is_created_is_listed_before_it_has_an_id() -> None:
    listed = with_those_in_progress({}, [event("one", "CREATE_IN_PROGRESS", physical_id=STACK), event("Trial", WORKS)])
    assert {name: (each["ResourceStatus"], each["Timestamp"]) for name, each in listed.items()} == {
        "Trial": ("CREATE_IN_PROGRESS", "now")
    }


@pytest.mark.parametrize(
    ("later", "expected"),
    [
        ([event("Trial", "UPDATE_IN_PROGRESS")], ("UPDATE_IN_PROGRESS", "now")),
        ([event("Trial", "DELETE_IN_PROGRESS", physical_id="trial-1")], ("DELETE_IN_PROGRESS", "now")),
        ([event("Trial", "UPDATE_IN_PROGRESS"), event("Trial", "UPDATE_COMPLETE")], ("CREATE_COMPLETE", "before")),
        ([event("Trial", "DELETE_IN_PROGRESS", physical_id="replaced")], ("CREATE_COMPLETE", "before")),
        ([event("Other", "UPDATE_COMPLETE")], ("CREATE_COMPLETE", "before")),
    ],
)
def test_what_was_there_has_the_status_of_its_last_event_while_that_is_no_end(
    later: list[dict[str, object]], expected: tuple[str, str]
) -> None:
    trial = with_those_in_progress({"Trial": DONE}, [event("Trial", WORKS), event("Trial", "CREATE_COMPLETE"), *later])[
        "Trial"
    ]
    assert (trial["ResourceStatus"], trial["Timestamp"]) == expected
    assert (trial["PhysicalResourceId"], trial["Properties"]) == ("trial-1", {"Pace": "quick"})
