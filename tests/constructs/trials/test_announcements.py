from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.stub import Stubber

from seatrial_cdk.trials.runtime.outcome import AwsBus, Detail, TopicFindings, announce, error_detail, result_detail
from seatrial_cdk.trials.runtime.properties import read_what_is_there
from seatrial_cdk.trials.runtime.store import UnavailableError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from mypy_boto3_events import EventBridgeClient

    from seatrial_load.documents.result import TrialResult

DETAIL: Detail = {"endpoint": "chat", "verdict": "pass"}
ENTRY = {"Source": "seatrial", "DetailType": "Sea trial finished", "Detail": json.dumps(DETAIL)}


@pytest.fixture
def stub() -> Iterator[Stubber]:
    client = boto3.client("events", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    with Stubber(client) as stub:
        yield stub


def bus_of(stub: Stubber) -> AwsBus:
    return AwsBus(cast("EventBridgeClient", stub.client))


def test_the_event_goes_to_the_default_bus_under_our_source(stub: Stubber) -> None:
    stub.add_response("put_events", {"FailedEntryCount": 0, "Entries": [{"EventId": "1"}]}, {"Entries": [ENTRY]})
    assert announce(bus_of(stub), DETAIL) == ""
    stub.assert_no_pending_responses()


def test_an_event_that_is_refused_is_told_and_nothing_fails(stub: Stubber) -> None:
    stub.add_client_error("put_events", "AccessDeniedException", http_status_code=400)
    assert announce(bus_of(stub), DETAIL) == (
        "no event: putting the event of the trial's end: An error occurred (AccessDeniedException) when calling the "
        "PutEvents operation: "
    )


def test_an_entry_that_fails_inside_a_good_answer_is_refused_too(stub: Stubber) -> None:
    stub.add_response("put_events", {"FailedEntryCount": 1, "Entries": [{"ErrorCode": "InternalFailure"}]})
    with pytest.raises(UnavailableError, match="InternalFailure"):
        bus_of(stub).put(DETAIL)


def test_a_measured_trial_is_told_whole(passed: TrialResult) -> None:
    detail = result_detail(passed, endpoint_name="dev-chat", result_uri="s3://r.json", report_uri="s3://r.md")
    assert detail == {
        "endpoint": "chat",
        "environment": "dev",
        "endpointName": "dev-chat",
        "planDigest": "b",
        "verdict": "pass",
        "because": "objective met",
        "kneeConcurrencyPerCopy": 16,
        "resultUri": "s3://r.json",
        "reportUri": "s3://r.md",
    }


@pytest.mark.parametrize(
    ("request_text", "names"),
    [('{"endpoint": "chat", "environment": "dev"}', ("chat", "dev")), ("{}", (None, None)), ("{", (None, None))],
)
def test_a_trial_that_could_not_be_made_is_told_with_the_names_that_can_be_read(
    request_text: str, names: tuple[str | None, str | None]
) -> None:
    properties = replace(read_what_is_there({}), request=request_text)
    detail = error_detail("SEA504: unreachable", properties, result_uri="s3://r.json")
    assert (detail["endpoint"], detail["environment"]) == names
    assert (detail["verdict"], detail["because"], detail["reportUri"]) == ("error", "SEA504: unreachable", None)


def test_both_kinds_of_events_have_the_same_fields(passed: TrialResult) -> None:
    measured = result_detail(passed, endpoint_name="", result_uri="", report_uri="")
    assert measured.keys() == error_detail("", read_what_is_there({}), result_uri="").keys()


def test_the_subject_of_a_finding_is_one_line_of_at_most_100_characters() -> None:
    client = boto3.client("sns", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    topic = "arn:aws:sns:us-east-1:123456789012:findings"
    with Stubber(client) as stub:
        expected = {"TopicArn": topic, "Subject": f"knee ?{'x' * 94}", "Message": "all of it"}
        stub.add_response("publish", {"MessageId": "1"}, expected)
        TopicFindings(client, topic).publish(f"knee\n\u00fc{'x' * 200}", "all of it")
        stub.assert_no_pending_responses()


def test_a_topic_that_refuses_keeps_a_finding_from_no_other() -> None:
    client = boto3.client("sns", region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="y")
    environment, team = (f"arn:aws:sns:us-east-1:123456789012:{name}" for name in ("environment", "team"))
    with Stubber(client) as stub:
        stub.add_client_error("publish", "AuthorizationError")
        stub.add_response("publish", {"MessageId": "1"}, {"TopicArn": team, "Subject": "s", "Message": "m"})
        with pytest.raises(UnavailableError, match=r"publishing to .*:environment"):
            TopicFindings(client, environment).publish("s", "m", [team])
        stub.assert_no_pending_responses()
