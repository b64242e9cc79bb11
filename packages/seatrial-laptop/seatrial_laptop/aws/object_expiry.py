"""Expiry of objects by S3's lifecycle rules: once a virtual day, and immediately when `object_age_days` is set.

Left out: transitions, noncurrent versions, delete markers and multipart uploads. AWS rounds an age up to midnight; here
an object expires at the age of its rule.
"""

from __future__ import annotations

import math
import sys
import threading
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final

from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop.aws.json_document import Document, child, children, number, text_member
from seatrial_laptop.aws.runtime.artifacts import own_s3

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectTypeDef

    from seatrial_laptop.aws.clock import VirtualClock
    from seatrial_laptop.aws.faults import ControlSettings, Faults

DAY_S: Final = 86_400.0
NO_RULES: Final = ("NoSuchLifecycleConfiguration", "NoSuchBucket")


class ObjectExpiry:
    """Deletes what has expired, in threads of its own."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._age_days = 0.0
        self._lock = threading.Lock()

    def follow(self, settings: ControlSettings) -> None:
        """Go by the setting: where it has changed, look at every object at once."""
        if settings.object_age_days != self._age_days:
            self._age_days = settings.object_age_days
            threading.Thread(target=self.expire, name="expiry", daemon=True).start()

    def run(self) -> None:
        """Look at every object once a virtual day, for ever."""
        while True:
            self._clock.wait(DAY_S, is_idle=True)
            self.expire()

    def expire(self) -> None:
        """Delete every object that has expired."""
        now = datetime.fromtimestamp(self._clock.aws_date_s(), UTC) + timedelta(days=self._age_days)
        with self._lock:
            try:
                for bucket in own_s3().list_buckets()["Buckets"]:
                    delete_expired(own_s3(), bucket["Name"], now)
            except (BotoCoreError, ClientError) as error:
                sys.stderr.write(f"lifecycle rules were not run: {error}\n")


def start_expiry(clock: VirtualClock, faults: Faults) -> None:
    """Let objects expire until the process ends."""
    expiry = ObjectExpiry(clock)
    faults.tell_changes(expiry.follow)
    threading.Thread(target=expiry.run, name="expiry", daemon=True).start()


def delete_expired(client: S3Client, bucket: str, now: datetime) -> None:
    """Delete the objects of a bucket that its rules have expired at a date."""
    try:
        rules: object = client.get_bucket_lifecycle_configuration(Bucket=bucket)["Rules"]
    except ClientError as error:
        if error.response["Error"]["Code"] in NO_RULES:
            return
        raise
    for rule in children({"Rules": rules}, "Rules"):
        if text_member(rule, "Status") == "Enabled" and "Days" in child(rule, "Expiration"):
            before = now - timedelta(days=number(child(rule, "Expiration"), "Days"))
            plain = child(rule, "Filter")
            chosen = {**plain, **child(plain, "And")}
            tags = {"Tags": [child(plain, "Tag")]} if child(plain, "Tag") else {}
            for key in _expired(client, bucket, {"Prefix": text_member(rule, "Prefix"), **chosen, **tags}, before):
                client.delete_object(Bucket=bucket, Key=key)


def _expired(client: S3Client, bucket: str, chosen: Document, before: datetime) -> Iterator[str]:
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=text_member(chosen, "Prefix"))
    for stored in [each for page in pages for each in page.get("Contents", [])]:
        if stored["LastModified"] <= before and _has_size(stored, chosen) and _has_tags(client, bucket, stored, chosen):
            yield stored["Key"]


def _has_size(stored: ObjectTypeDef, chosen: Document) -> bool:
    least, most = chosen.get("ObjectSizeGreaterThan", -1), chosen.get("ObjectSizeLessThan", math.inf)
    if not isinstance(least, int) or not isinstance(most, int | float):
        raise TypeError(f"not sizes: {least!r}, {most!r}")
    return least < stored["Size"] < most


def _has_tags(client: S3Client, bucket: str, stored: ObjectTypeDef, chosen: Document) -> bool:
    wanted: Iterable[Document] = children(chosen, "Tags")
    if not wanted:
        return True
    tags = client.get_object_tagging(Bucket=bucket, Key=stored["Key"])["TagSet"]
    return all(dict(each) in [dict(tag) for tag in tags] for each in wanted)
