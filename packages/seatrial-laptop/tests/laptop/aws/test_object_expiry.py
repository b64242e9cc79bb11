from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

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
