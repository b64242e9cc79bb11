from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from seatrial_laptop.aws.object_expiry import delete_expired

if TYPE_CHECKING:
    from collections.abc import Callable

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def bucket(laptop: Laptop, *rules: dict[str, object], keys: tuple[str, ...]) -> str:
    name: str = laptop.name("expiring")
    laptop.s3.create_bucket(Bucket=name)
    for key in keys:
        laptop.s3.put_object(Bucket=name, Key=key, Body=b"1234", Tagging="kind=old" if "tagged" in key else "")
    plain = [{"ID": f"rule-{at}", "Status": "Enabled", **each} for at, each in enumerate(rules)]
    laptop.s3.put_bucket_lifecycle_configuration(Bucket=name, LifecycleConfiguration={"Rules": plain})
    return name


def keys_of(laptop: Laptop, name: str) -> list[str]:
    return [each["Key"] for each in laptop.s3.list_objects_v2(Bucket=name).get("Contents", [])]


def test_a_rule_expires_what_it_chooses_once_it_is_as_old(laptop: Laptop) -> None:
    name = bucket(
        laptop,
        {"Filter": {"Prefix": "runs/"}, "Expiration": {"Days": 30}},
        {"Filter": {"Tag": {"Key": "kind", "Value": "old"}}, "Expiration": {"Days": 30}},
        {
            "Filter": {"And": {"Prefix": "big/", "ObjectSizeGreaterThan": 4, "ObjectSizeLessThan": 9}},
            "Expiration": {"Days": 30},
        },
        {"Filter": {"Prefix": "off/"}, "Expiration": {"Days": 1}, "Status": "Disabled"},
        {"Filter": {"Prefix": "moved/"}, "Transitions": [{"Days": 1, "StorageClass": "GLACIER"}]},
        keys=("runs/a", "tagged", "big/a", "off/a", "moved/a", "state/a"),
    )
    laptop.s3.put_object(Bucket=name, Key="big/b", Body=b"12345")
    delete_expired(laptop.s3, name, datetime.now(UTC) + timedelta(days=29))
    assert len(keys_of(laptop, name)) == 7
    delete_expired(laptop.s3, name, datetime.now(UTC) + timedelta(days=31))
    assert keys_of(laptop, name) == ["big/a", "moved/a", "off/a", "state/a"]


def test_a_bucket_with_versions_keeps_the_object_behind_a_marker(laptop: Laptop) -> None:
    name = bucket(laptop, {"Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}, keys=())
    laptop.s3.put_bucket_versioning(Bucket=name, VersioningConfiguration={"Status": "Enabled"})
    laptop.s3.put_object(Bucket=name, Key="a", Body=b"1")
    delete_expired(laptop.s3, name, datetime.now(UTC) + timedelta(days=2))
    versions = laptop.s3.list_object_versions(Bucket=name)
    assert (keys_of(laptop, name), len(versions["Versions"]), len(versions["DeleteMarkers"])) == ([], 1, 1)


def test_objects_are_made_older_by_a_setting(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    name = bucket(laptop, {"Filter": {"Prefix": "runs/"}, "Expiration": {"Days": 365}}, keys=("runs/a", "state/a"))
    control(object_age_days=366)
    deadline = time.monotonic() + 30
    while keys_of(laptop, name) != ["state/a"]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_cloudformation_sets_the_rules_of_a_bucket(laptop: Laptop) -> None:
    stack, client = laptop.name("stack"), laptop.cloudformation
    rules = [
        {"Id": "runs", "Status": "Enabled", "Prefix": "runs/", "ExpirationInDays": 365},
        {"Status": "Enabled", "ExpirationInDays": "30", "TagFilters": [{"Key": "kind", "Value": "old"}]},
        {"Status": "Enabled", "AbortIncompleteMultipartUpload": {"DaysAfterInitiation": 7}},
        {"Status": "Enabled", "Transitions": [{"StorageClass": "GLACIER", "TransitionInDays": 1}]},
    ]
    for kept in (rules, []):
        properties = {"BucketName": stack, "LifecycleConfiguration": {"Rules": kept}} if kept else {"BucketName": stack}
        template = json.dumps({"Resources": {"Bucket": {"Type": "AWS::S3::Bucket", "Properties": properties}}})
        change = client.create_stack if kept else client.update_stack
        change(StackName=stack, TemplateBody=template)
        client.get_waiter("stack_create_complete" if kept else "stack_update_complete").wait(
            StackName=stack, WaiterConfig={"Delay": 1}
        )
        if kept:
            told = laptop.s3.get_bucket_lifecycle_configuration(Bucket=stack)["Rules"]
            assert [each.get("Expiration") for each in told] == [{"Days": 365}, {"Days": 30}, None]
            assert (told[0]["ID"], told[0]["Filter"]) == ("runs", {"Prefix": "runs/"})
            assert told[1]["Filter"]["And"]["Tags"] == [{"Key": "kind", "Value": "old"}]
            assert told[2]["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 7}
    with pytest.raises(ClientError, match="NoSuchLifecycleConfiguration"):
        laptop.s3.get_bucket_lifecycle_configuration(Bucket=stack)
    client.delete_stack(StackName=stack)
