"""Keys of the documents of trials, and the one exception for every call of AWS that fails.

trials/{endpoint}/{plan digest}/{request id}.json            each trial: its result, or `{"error": "…"}`
trials/{endpoint}/scheduled/{request id}.json                each scheduled trial, likewise
trials/{endpoint}/scheduled/latest.json                      the last of these
latest/{endpoint}/{plan digest}/{config}/{model}.json        the last result of a deployed configuration
passed/{endpoint}/{plan digest}/{config}/{model}.json        the last result of it that was a pass
released/{endpoint}/result.json                              what is deployed: the last pass, of whatever plan
{beside each of these}.md                                    the short report of the same result
state/{endpoint}/owner.json                                  the request that trials may serve (`ownership`)
state/{endpoint}/copies.json                                 the copies of the last response to CloudFormation
state/{endpoint}/no-room.json                                the configuration for whose candidate there was no room
state/{endpoint}/scheduled-passed.json                       the last scheduled trial that passed
held/{endpoint}/scaling.json                                 what scaling was before scale-in was suspended
runs/_noted/{hour since the epoch}/{endpoint}/{request id}.json    a request that came then
runs/{endpoint}/{request id}/noted.json                      the request as it came, and when
runs/{endpoint}/{request id}/seen.json                       when the request was seen first
runs/{endpoint}/{request id}/request.json                    the request as CloudFormation sent it
runs/{endpoint}/{request id}/created.json                    when the candidate was created, beside how much
runs/{endpoint}/{request id}/started.json                    when the candidate began to serve
runs/{endpoint}/{request id}/progress.json                   where its trial stands (`seatrial trial watch` reads it)
runs/{endpoint}/{request id}/level.json                      the level that is loaded at the moment
runs/{endpoint}/{request id}/{round}/                        what the steps of one level hand on (`load_phase`)
runs/{endpoint}/{request id}/answered.json                   what CloudFormation is answered
runs/{endpoint}/{request id}/sent.json                       it was answered

What lies below trials/ and runs/ expires (`trials.trial_results`); what later requests read lies below the others.
Older releases kept what is below state/ now where it expired: it is still read there (`read_state`).

Another release may render a plan otherwise; so a configuration is identified by its endpoint config and model too. The
key of what is released depends on no plan, so that the next plan's trial finds it as its baseline.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from botocore.exceptions import ClientError
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import ObjectIdentifierTypeDef, PutObjectRequestTypeDef


TRIALS, LATEST, PASSED, RELEASED, RUNS, HELD = "trials", "latest", "passed", "released", "runs", "held"
STATE = "state"
"""What later requests read, however late they come: nothing below it expires."""
NOTES: Final = f"{RUNS}/_noted/"
"""Names of requests by the hour in which they came; no endpoint has an underscore in its name."""
EXPIRING = (TRIALS, RUNS)
SCHEDULED = "scheduled"
"""Below an endpoint's trials, the scheduled ones."""
STATE_FOLDERS = (LATEST, PASSED, RELEASED, RUNS, HELD, STATE)
"""What later deployments are answered from; the history of trials is evidence, and stays."""

PASSED_ON_SCHEDULE = "scheduled-passed.json"

MOST_REMOVED = 1000
"""Objects that one call of S3 removes at most."""

CONFLICTS = 3
"""How often a write may meet another one of the same key (S3 answers 409) before that counts as unavailable."""

CONDITIONS: Final[Mapping[str, str]] = MappingProxyType({"IfMatch": "If-Match", "IfNoneMatch": "If-None-Match"})
"""Members of PutObject with their headers (S3 API reference, PutObject)."""

UNUSABLE_KEY = ("KMS.DisabledException", "KMS.KMSInvalidStateException", "KMS.NotFoundException")
"""S3's codes for an object whose key is disabled, about to be deleted, or deleted."""


class UnavailableError(Exception):
    """AWS refused or throttled a call, or could not be reached; the message names the call and the reason.

    Every function of this package that calls AWS raises it, unless its docstring names another treatment.
    """


@contextmanager
def calling(what: str) -> Iterator[None]:
    """Turn a failed call inside the block into an UnavailableError."""
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

    try:
        yield
    except (BotoCoreError, ClientError) as failed:
        raise UnavailableError(f"{what}: {failed}") from failed


def with_conditions(client: S3Client) -> S3Client:
    """Let a client of any age send the conditions of a write: botocore 1.35.1 has none, and refuses what it lacks."""
    client.meta.events.register("before-parameter-build.s3.PutObject", _take_conditions)
    client.meta.events.register("before-call.s3.PutObject", _send_conditions)
    return client


def _take_conditions(params: dict[str, object], context: dict[str, object], **_: object) -> None:
    context["conditions"] = {header: params.pop(name) for name, header in CONDITIONS.items() if name in params}


def _send_conditions(params: dict[str, dict[str, object]], context: dict[str, dict[str, object]], **_: object) -> None:
    params["headers"].update(context["conditions"])


@dataclass(frozen=True, slots=True)
class Versioned:
    """A text, and by what a later write knows that it is still the same (S3's ETag)."""

    text: str
    version: str


class TrialStore(Protocol):
    """Texts by key."""

    def read(self, key: str) -> str | None:
        """Return a text; `None` when there is none."""

    def read_versioned(self, key: str) -> Versioned | None:
        """Return a text with its version; `None` when there is none."""

    def write(self, key: str, text: str) -> None:
        """Write a text, over what was there."""

    def replace(self, key: str, text: str, version: str) -> bool:
        """Write a text over that version of it, and return whether it was still there."""

    def create(self, key: str, text: str) -> bool:
        """Write a text where there is none, and return whether this call did: of many at once, one does."""

    def uri(self, key: str) -> str:
        """Return the URI of a text."""

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix."""

    def clear(self, endpoint_name: str) -> None:
        """Remove what later deployments of an endpoint are answered from."""


@dataclass(frozen=True, slots=True)
class S3TrialStore:
    """Texts in a bucket: the results, or, with Object Lock, records of what serves."""

    client: S3Client
    bucket: str
    is_locked: bool = False

    def read(self, key: str) -> str | None:
        """Return a text; `None` when there is none, or when its key can't be used any more."""
        versioned = self.read_versioned(key)
        return None if versioned is None else versioned.text

    def read_versioned(self, key: str) -> Versioned | None:
        """Return a text with its ETag; `None` when there is none, or when its key can't be used any more.

        The environment's KMS key may change between two deployments. What the key of before encrypted is lost to the
        function, and must not keep every later trial from being made.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        with calling(f"reading {self.uri(key)}"):
            try:
                response = self.client.get_object(Bucket=self.bucket, Key=key)
                return Versioned(response["Body"].read().decode(), response["ETag"])
            except self.client.exceptions.NoSuchKey:
                return None
            except ClientError as refused:
                if _undecryptable(refused):
                    return None
                raise

    def write(self, key: str, text: str) -> None:
        """Write a text, over what was there."""
        with calling(f"writing {self.uri(key)}"):
            self.client.put_object(**self._object(key, text))

    def replace(self, key: str, text: str, version: str) -> bool:
        """Write a text over that version of it, by S3's conditional write."""
        return self._conditional(f"replacing {self.uri(key)}", {**self._object(key, text), "IfMatch": version})

    def create(self, key: str, text: str) -> bool:
        """Write a text where there is none, by S3's conditional write."""
        return self._conditional(f"creating {self.uri(key)}", {**self._object(key, text), "IfNoneMatch": "*"})

    def _object(self, key: str, text: str) -> PutObjectRequestTypeDef:
        content_type = "text/markdown; charset=utf-8" if key.endswith(".md") else "application/json"
        request: PutObjectRequestTypeDef = {
            "Bucket": self.bucket,
            "Key": key,
            "Body": text.encode(),
            "ContentType": content_type,
        }
        # S3 takes nothing that it is to retain without one (S3 user guide, Object Lock considerations).
        return {**request, "ChecksumAlgorithm": "CRC32"} if self.is_locked else request

    def _conditional(self, what: str, request: PutObjectRequestTypeDef) -> bool:
        from botocore.exceptions import ClientError  # noqa: PLC0415 (synth and most tests need no botocore)

        for _ in range(CONFLICTS):
            with calling(what):
                try:
                    self.client.put_object(**request)
                except ClientError as refused:
                    status = refused.response["ResponseMetadata"]["HTTPStatusCode"]
                    # 404 is a text that was removed before its replacement: the version is as gone as with 412.
                    if status in {HTTPStatus.PRECONDITION_FAILED, HTTPStatus.NOT_FOUND}:
                        return False
                    if status != HTTPStatus.CONFLICT:
                        raise
                else:
                    return True
        raise UnavailableError(f"{what}: {CONFLICTS} concurrent writes")

    def uri(self, key: str) -> str:
        """Return the S3 URI of a text."""
        return f"s3://{self.bucket}/{key}"

    def keys(self, prefix: str) -> list[str]:
        """Return the keys that begin with a prefix."""
        with calling(f"listing {self.uri(prefix)}"):
            pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
            return [entry["Key"] for page in pages for entry in page.get("Contents", ())]

    def clear(self, endpoint_name: str) -> None:
        """Remove what later deployments of an endpoint are answered from."""
        with calling(f"emptying s3://{self.bucket} of {endpoint_name}"):
            for prefix in (*(f"{folder}/{endpoint_name}/" for folder in STATE_FOLDERS), NOTES):
                keys = [key for key in self.keys(prefix) if f"/{endpoint_name}/" in f"/{key}"]
                for first in range(0, len(keys), MOST_REMOVED):
                    objects: list[ObjectIdentifierTypeDef] = [
                        {"Key": key} for key in keys[first : first + MOST_REMOVED]
                    ]
                    removal = self.client.delete_objects(Bucket=self.bucket, Delete={"Objects": objects, "Quiet": True})
                    # S3 responds with 200 even where it removed none of them.
                    if left := removal.get("Errors"):
                        why = f"{len(left)} objects are left, the first {left[0].get('Key')}: {left[0].get('Code')}"
                        raise UnavailableError(f"emptying s3://{self.bucket}: {why}")


def _undecryptable(refused: ClientError) -> bool:
    """Tell whether S3 refused a text because of its KMS key: nothing may use it, or this function may not."""
    error = refused.response["Error"]
    return error["Code"] in UNUSABLE_KEY or (error["Code"] == "AccessDenied" and "kms:Decrypt" in error["Message"])


def is_scheduled(request_id: str) -> bool:
    """Tell whether a request is for a scheduled trial."""
    return request_id.startswith(f"{SCHEDULED}-")


def owner_key(endpoint_name: str) -> str:
    """Return the key of the request that an endpoint's trials may serve."""
    return f"{STATE}/{endpoint_name}/owner.json"


def held_key(endpoint_name: str) -> str:
    """Return the key of what scaling was before an update of the endpoint suspended scale-in."""
    return f"{HELD}/{endpoint_name}/scaling.json"


def copies_key(endpoint_name: str) -> str:
    """Return the key of the copies of the last response to CloudFormation."""
    return f"{STATE}/{endpoint_name}/copies.json"


def no_room_key(endpoint_name: str) -> str:
    """Return the key of the configuration for whose candidate there was no room."""
    return f"{STATE}/{endpoint_name}/no-room.json"


def run_key(endpoint_name: str, request_id: str, name: str) -> str:
    """Return the key of a document of one request."""
    return f"{RUNS}/{endpoint_name}/{request_id}/{name}.json"


def noted_key(hour: int, endpoint_name: str = "", request_id: str = "") -> str:
    """Return the key of the name of a request that came in an hour since the epoch; without it, what all begin with."""
    return f"{NOTES}{hour}/{endpoint_name and f'{endpoint_name}/{request_id}.json'}"


def released_key(endpoint_name: str) -> str:
    """Return the key of the last pass of an endpoint, whatever its plan."""
    return f"{RELEASED}/{endpoint_name}/result.json"


def report_key(key: str) -> str:
    """Return the key of the short report beside a result."""
    return f"{key.removesuffix('.json')}.md"


def configuration_key(endpoint_name: str, plan_digest: str, endpoint_config_name: str, model_name: str) -> str:
    """Return the key of the last pass of a configuration, by its names."""
    return f"{PASSED}/{endpoint_name}/{plan_digest}/{endpoint_config_name}/{model_name}.json"


def scheduled_latest_key(endpoint_name: str) -> str:
    """Return the key of the last scheduled trial's document, whatever its plan."""
    return f"{TRIALS}/{endpoint_name}/{SCHEDULED}/latest.json"


def scheduled_passed_key(endpoint_name: str) -> str:
    """Return the key of the last scheduled trial that passed."""
    return f"{STATE}/{endpoint_name}/{PASSED_ON_SCHEDULE}"


def former_key(key: str) -> str:
    """Return where an older release kept what is below `state/` now."""
    _, endpoint_name, name = key.split("/")
    if name == PASSED_ON_SCHEDULE:
        return f"{TRIALS}/{endpoint_name}/{SCHEDULED}/passed.json"
    return f"{RUNS}/{endpoint_name}/{name}"


def read_state(store: TrialStore, key: str) -> str | None:
    """Return a text below `state/`, or what an older release kept in its stead; `None` when there is neither."""
    text = store.read(key)
    return store.read(former_key(key)) if text is None else text
