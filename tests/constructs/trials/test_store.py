from __future__ import annotations

import io
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.awsrequest import AWSPreparedRequest, AWSResponse
from botocore.compat import HTTPHeaders
from botocore.model import StructureShape
from botocore.response import StreamingBody
from botocore.stub import Stubber
from urllib3 import HTTPResponse

from seatrial_cdk.trials.runtime.store import S3TrialStore, UnavailableError, Versioned, with_conditions

if TYPE_CHECKING:
    from collections.abc import Callable

KEY = "trials/dev-chat/b/request-1.json"

CONTENTS: dict[str, list[str]] = {
    "latest": ["1", "2"],
    "passed": ["3"],
    "released": [],
    "runs": ["4"],
    "held": ["5"],
    "state": ["6"],
}


@pytest.fixture
def store() -> S3TrialStore:
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    return S3TrialStore(client, "results")


def test_a_text_is_read(store: S3TrialStore) -> None:
    body = b"{}"
    with Stubber(store.client) as stub:
        answer = {"Body": StreamingBody(io.BytesIO(body), len(body)), "ETag": '"1"'}
        stub.add_response("get_object", answer, {"Bucket": "results", "Key": KEY})
        assert store.read_versioned(KEY) == Versioned("{}", '"1"')


def test_the_conditions_of_a_write_are_sent_by_a_boto3_that_has_none(store: S3TrialStore) -> None:
    client, sent = with_conditions(store.client), list[AWSPreparedRequest]()
    put = client.meta.service_model.operation_model("PutObject").input_shape
    assert isinstance(put, StructureShape)
    for name in ("IfMatch", "IfNoneMatch"):
        del put.members[name]

    def answer(request: AWSPreparedRequest, **_: object) -> AWSResponse:
        sent.append(request)
        status, empty = 412 if len(sent) == 3 else 200, HTTPResponse(io.BytesIO(), preload_content=False)
        return AWSResponse(request.url, status, HTTPHeaders(), empty)

    client.meta.events.register("before-send.s3.PutObject", cast("Callable[..., None]", answer))
    assert store.create(KEY, "{}")
    assert store.replace(KEY, "{}", '"1"')
    assert not store.create(KEY, "{}")
    store.write(KEY, "{}")
    told = [(each.headers.get("If-None-Match"), each.headers.get("If-Match")) for each in sent]
    assert told == [(b"*", None), (None, b'"1"'), (b"*", None), (None, None)]
    assert b"if-none-match" in sent[0].headers["Authorization"], "it is signed"


def test_a_missing_text_is_none(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        stub.add_client_error("get_object", "NoSuchKey", http_status_code=404)
        assert store.read(KEY) is None


def test_a_forbidden_text_is_not_a_missing_one(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        stub.add_client_error("get_object", "AccessDenied", http_status_code=403)
        with pytest.raises(UnavailableError) as raised:
            store.read(KEY)
    assert str(raised.value) == (
        f"reading s3://results/{KEY}: An error occurred (AccessDenied) when calling the GetObject operation: "
    )


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("AccessDenied", "runner is not authorized to perform: kms:Decrypt on the resource of this ciphertext"),
        ("KMS.DisabledException", "the key is disabled"),
        ("KMS.KMSInvalidStateException", "the key is pending deletion"),
        ("KMS.NotFoundException", "the key does not exist"),
    ],
)
def test_a_text_of_a_key_that_is_gone_is_a_missing_one(store: S3TrialStore, code: str, message: str) -> None:
    """Else a stack that got another KMS key could never be tried again."""
    with Stubber(store.client) as stub:
        stub.add_client_error("get_object", code, message, http_status_code=400)
        assert store.read(KEY) is None


def test_texts_that_s3_could_not_remove_are_told(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        listed = [{"Key": f"latest/dev-chat/{name}"} for name in "ab"]
        stub.add_response("list_objects_v2", {"Contents": listed})
        stub.add_response("delete_objects", {"Errors": [{"Key": "b", "Code": "InternalError"}]})
        with pytest.raises(UnavailableError) as raised:
            store.clear("dev-chat")
    assert str(raised.value) == "emptying s3://results: 1 objects are left, the first b: InternalError"


def test_what_later_deployments_are_answered_from_is_removed_folder_by_folder_and_the_trials_stay(
    store: S3TrialStore,
) -> None:
    with Stubber(store.client) as stub:
        for folder, keys in CONTENTS.items():
            prefix = f"{folder}/dev-chat/"
            found = {"Contents": [{"Key": f"{prefix}{key}"} for key in keys]} if keys else {}
            stub.add_response("list_objects_v2", found, {"Bucket": "results", "Prefix": prefix})
            if keys:
                removed = {"Objects": [{"Key": f"{prefix}{key}"} for key in keys], "Quiet": True}
                stub.add_response("delete_objects", {}, {"Bucket": "results", "Delete": removed})
        noted = [{"Key": f"runs/_noted/7/{name}/request-1.json"} for name in ("dev-chat", "dev-chatter")]
        stub.add_response("list_objects_v2", {"Contents": noted}, {"Bucket": "results", "Prefix": "runs/_noted/"})
        removed = {"Objects": noted[:1], "Quiet": True}
        stub.add_response("delete_objects", {}, {"Bucket": "results", "Delete": removed})
        store.clear("dev-chat")
        stub.assert_no_pending_responses()


def test_a_text_is_written_as_json(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        sent = {"Bucket": "results", "Key": KEY, "Body": b"{}", "ContentType": "application/json"}
        stub.add_response("put_object", {}, sent)
        store.write(KEY, "{}")
        stub.assert_no_pending_responses()


def test_a_report_is_written_as_markdown(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        sent = {"Bucket": "results", "Key": "x.md", "Body": b"#", "ContentType": "text/markdown; charset=utf-8"}
        stub.add_response("put_object", {}, sent)
        store.write("x.md", "#")
        stub.assert_no_pending_responses()


def test_a_text_that_cannot_be_written_is_told(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        stub.add_client_error("put_object", "SlowDown", http_status_code=503)
        with pytest.raises(UnavailableError) as raised:
            store.write(KEY, "{}")
    assert str(raised.value) == (
        f"writing s3://results/{KEY}: An error occurred (SlowDown) when calling the PutObject operation: "
    )


CREATED = {"Bucket": "results", "Key": KEY, "Body": b"{}", "ContentType": "application/json", "IfNoneMatch": "*"}


@pytest.mark.parametrize(
    ("answers", "created"),
    [
        pytest.param([None], True, id="nothing was there"),
        pytest.param([412], False, id="something was there"),
        pytest.param([409, None], True, id="another write at the same time failed"),
        pytest.param([409, 412], False, id="another write at the same time won"),
    ],
)
def test_a_text_is_created_by_one_of_many(store: S3TrialStore, answers: list[int | None], *, created: bool) -> None:
    with Stubber(store.client) as stub:
        for status in answers:
            if status is None:
                stub.add_response("put_object", {}, CREATED)
            else:
                stub.add_client_error("put_object", "Refused", http_status_code=status, expected_params=CREATED)
        assert store.create(KEY, "{}") is created
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("status", "replaced"),
    [
        pytest.param(None, True, id="it was still there"),
        pytest.param(412, False, id="another write came between"),
        pytest.param(404, False, id="it was removed"),
    ],
)
def test_a_text_is_replaced_where_it_is_still_the_same(
    store: S3TrialStore, status: int | None, *, replaced: bool
) -> None:
    asked = {"Bucket": "results", "Key": KEY, "Body": b"{}", "ContentType": "application/json", "IfMatch": '"1"'}
    with Stubber(store.client) as stub:
        if status is None:
            stub.add_response("put_object", {}, asked)
        else:
            stub.add_client_error("put_object", "Refused", http_status_code=status, expected_params=asked)
        assert store.replace(KEY, "{}", '"1"') is replaced
        stub.assert_no_pending_responses()


@pytest.mark.parametrize(
    ("statuses", "message"),
    [
        ([409, 409, 409], f"creating s3://results/{KEY}: 3 concurrent writes"),
        (
            [403],
            f"creating s3://results/{KEY}: An error occurred (Refused) when calling the PutObject operation: ",
        ),
    ],
)
def test_where_it_cannot_be_told_who_created_nobody_did(store: S3TrialStore, statuses: list[int], message: str) -> None:
    with Stubber(store.client) as stub:
        for status in statuses:
            stub.add_client_error("put_object", "Refused", http_status_code=status)
        with pytest.raises(UnavailableError) as raised:
            store.create(KEY, "{}")
    assert str(raised.value) == message


def test_people_find_a_text_by_its_uri(store: S3TrialStore) -> None:
    assert store.uri(KEY) == f"s3://results/{KEY}"
