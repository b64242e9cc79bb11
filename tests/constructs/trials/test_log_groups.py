"""Logs of containers end after a month, and go with what wrote them where nothing is to be kept."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_base.tags import candidate_name
from seatrial_cdk.trials.runtime.log_groups import AwsLogGroups, log_group_name, log_groups_of
from seatrial_cdk.trials.runtime.store import UnavailableError
from tests.constructs.conftest import component
from tests.constructs.trials.conftest import COMPONENT

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial_cdk.trials.runtime.order import CustomResourceEvent
    from seatrial_load.documents.result import TrialResult
    from tests.constructs.trials.conftest import World

OURS = {"/aws/sagemaker/Endpoints/dev-chat", "/aws/sagemaker/InferenceComponents/dev-chat-model"}


def test_the_groups_are_those_that_sagemaker_names() -> None:
    assert set(log_groups_of("dev-chat", "dev-chat-model")) == OURS


def test_a_group_that_is_not_there_is_left_out_and_another_refusal_is_told() -> None:
    client = boto3.client("logs", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x")
    with Stubber(client) as stub:
        stub.add_client_error("put_retention_policy", "ResourceNotFoundException")
        stub.add_response("put_retention_policy", {}, {"logGroupName": "b", "retentionInDays": 30})
        stub.add_response("put_retention_policy", {}, {"logGroupName": "b", "retentionInDays": 90})
        stub.add_client_error("delete_log_group", "ResourceNotFoundException")
        stub.add_client_error("delete_log_group", "AccessDeniedException")
        AwsLogGroups(client).limit(["a", "b"])
        AwsLogGroups(client, days=90).limit(["b"])
        AwsLogGroups(client).delete(["a"])
        with pytest.raises(UnavailableError, match=r"deleting b: .*AccessDenied"):
            AwsLogGroups(client).delete(["b"])


def test_those_of_an_endpoint_end_after_a_month(world: World, create: CustomResourceEvent) -> None:
    world.ask(create)
    world.machine().execute()
    assert (world.logs.limited, world.logs.deleted) == (OURS, set())


@pytest.mark.parametrize("verdict", ["pass", "fail"])
def test_those_of_a_candidate_go_with_it_unless_they_tell_why_it_failed(
    world: World,
    update: CustomResourceEvent,
    missed: Callable[[Literal["fail", "inconclusive"]], TrialResult],
    verdict: str,
) -> None:
    world.components.found[COMPONENT] = component()
    update["ResourceProperties"] = {**update["ResourceProperties"], "Phase": "candidate"}
    if verdict == "fail":
        world.course.result = missed("fail")
    world.ask(update)
    world.machine().execute()
    group = {log_group_name(candidate_name("dev-chat", "request-1"))}
    assert (world.logs.deleted, world.logs.limited) == ((group, set()) if verdict == "pass" else (set(), group))


def test_those_of_a_candidate_end_after_a_month_when_its_update_is_cancelled(
    world: World, update: CustomResourceEvent
) -> None:
    """The candidate is removed by the request of the rollback: no step of the trial comes to its end."""
    candidate = candidate_name("dev-chat", "request-0")
    world.components.found |= {COMPONENT: component(), candidate: component(candidate)}
    world.status = "UPDATE_ROLLBACK_IN_PROGRESS"
    update["ResourceProperties"] = {**update["ResourceProperties"], "Phase": "candidate"}
    world.ask(update)
    assert world.components.found.keys() == {COMPONENT}
    assert world.logs.limited == {log_group_name(candidate)}


@pytest.mark.parametrize(
    ("phase", "removal", "status", "deleted"),
    [
        ("candidate", "destroy", "DELETE_IN_PROGRESS", OURS),
        ("candidate", "retain", "DELETE_IN_PROGRESS", set()),
        ("candidate", "destroy", "ROLLBACK_IN_PROGRESS", set()),
        ("deployed", "destroy", "DELETE_IN_PROGRESS", set()),
    ],
)
def test_they_are_deleted_last_where_nothing_is_kept_but_those_of_a_failed_creation(
    world: World, create: CustomResourceEvent, phase: str, removal: str, status: str, deleted: set[str]
) -> None:
    world.status = status
    properties = {**create["ResourceProperties"], "Phase": phase, "Removal": removal}
    world.ask({**create, "RequestType": "Delete", "PhysicalResourceId": "id", "ResourceProperties": properties})
    assert world.logs.deleted == deleted
