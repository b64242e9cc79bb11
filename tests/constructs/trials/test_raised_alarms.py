"""A first trial, and a deployment that no alarm rolls back, wait until raised alarms have ended."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trials.runtime.aws_context import RaisedAlarmNames
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.conftest import OLD, component
from tests.constructs.trials.conftest import COMPONENT, ORDERED_S

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from tests.constructs.trials.conftest import World


@pytest.mark.parametrize(("raised_s", "answered_s"), [(0.0, 0.0), (200.0, 200.0), (10_000.0, 420.0)])
def test_a_first_trial_ends_when_the_alarms_that_its_load_raised_have_ended(
    ordered: World, raised_s: float, answered_s: float
) -> None:
    """What is told people comes after it, and the next update meets no alarm of this trial."""
    ordered.alarms_end_s = ORDERED_S + raised_s
    ordered.machine().execute()
    assert ordered.responses[-1]["Status"] == "SUCCESS"
    waited_s = ordered.clock.now_s - ORDERED_S
    assert answered_s <= waited_s <= answered_s + 20.0


@pytest.fixture
def repair(world: World, update: CustomResourceEvent) -> CustomResourceEvent:
    """Return the request before a broken component moves: no trial before it, and its alarms are switched off."""
    world.components.found[COMPONENT] = component(current_copies=3, desired_copies=3)
    world.scaling.states[COMPONENT] = {}
    for name in ("ResourceProperties", "OldResourceProperties"):
        update[name] = {**update[name], "Phase": "candidate", "Update": "verify_only"}
    update["OldResourceProperties"] |= {"ModelName": "model-1", "Specification": json.dumps(OLD)}
    update["ResourceProperties"]["RollbackAlarms"] = "off"
    return {**update, "PhysicalResourceId": "candidate-trial-dev-chat"}


@pytest.mark.parametrize(("switch", "waited_s"), [("off", 60.0), ("on", 0.0)])
def test_a_repair_waits_until_the_alarms_that_are_off_have_ended(
    world: World, repair: CustomResourceEvent, switch: str, waited_s: float
) -> None:
    repair["ResourceProperties"]["RollbackAlarms"] = switch
    world.alarms_end_s = ORDERED_S + 60.0
    assert world.ask(repair) is None
    world.machine().execute()
    assert world.responses[-1]["Status"] == "SUCCESS"
    assert world.responses[-1]["Data"]["CopyCount"] == "3"  # type: ignore[index] # a mapping
    assert waited_s <= world.clock.now_s - ORDERED_S < waited_s + 20.0


def test_the_states_of_alarms_are_asked_by_name() -> None:
    client = boto3.client("cloudwatch", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    asked = {"AlarmNames": ["a", "b"], "AlarmTypes": ["MetricAlarm"], "MaxRecords": 100}
    with Stubber(client) as stubber:
        rows = [{"AlarmName": "a", "StateValue": "OK"}, {"AlarmName": "b", "StateValue": "ALARM"}]
        stubber.add_response("describe_alarms", {"MetricAlarms": rows}, asked)
        assert RaisedAlarmNames(client)(["a", "b"]) == ("b",)
        stubber.add_client_error("describe_alarms", "Throttling")
        with pytest.raises(UnavailableError, match="reading the states of alarms"):
            RaisedAlarmNames(client)(["a"])
        assert RaisedAlarmNames(client)([]) == ()
