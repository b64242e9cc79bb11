from __future__ import annotations

import io

import boto3
import pytest
from botocore.response import StreamingBody
from botocore.stub import Stubber

from seatrial_cdk.smoke_benchmark.runtime.trial_store import S3TrialStore
from seatrial_cdk.smoke_benchmark.runtime.unavailable import UnavailableError

KEY = "trials/dev-chat/b/request-1.json"


@pytest.fixture
def store() -> S3TrialStore:
    client = boto3.client("s3", region_name="us-east-1", aws_access_key_id="test", aws_secret_access_key="test")
    return S3TrialStore(client, "results")


def test_a_text_is_read(store: S3TrialStore) -> None:
    body = b"{}"
    with Stubber(store.client) as stub:
        answer = {"Body": StreamingBody(io.BytesIO(body), len(body))}
        stub.add_response("get_object", answer, {"Bucket": "results", "Key": KEY})
        assert store.read(KEY) == "{}"


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


def test_the_texts_of_an_endpoint_are_removed_folder_by_folder(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        for folder, keys in (("trials", ["1", "2"]), ("latest", []), ("passed", ["3"])):
            prefix = f"{folder}/dev-chat/"
            found = {"Contents": [{"Key": f"{prefix}{key}"} for key in keys]} if keys else {}
            stub.add_response("list_objects_v2", found, {"Bucket": "results", "Prefix": prefix})
            if keys:
                removed = {"Objects": [{"Key": f"{prefix}{key}"} for key in keys], "Quiet": True}
                stub.add_response("delete_objects", {}, {"Bucket": "results", "Delete": removed})
        store.clear("dev-chat")
        stub.assert_no_pending_responses()


def test_a_text_is_written_as_json(store: S3TrialStore) -> None:
    with Stubber(store.client) as stub:
        sent = {"Bucket": "results", "Key": KEY, "Body": b"{}", "ContentType": "application/json"}
        stub.add_response("put_object", {}, sent)
        store.write(KEY, "{}")
        stub.assert_no_pending_responses()


def test_people_find_a_text_by_its_uri(store: S3TrialStore) -> None:
    assert store.uri(KEY) == f"s3://results/{KEY}"
