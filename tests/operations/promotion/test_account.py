"""The trial of a deployed endpoint, as its stack and its environment's bucket tell it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import pytest

from seatrial.operations.promotion import evidence_of_result, evidence_of_stack, signing_key
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.yaml_edit import edited_text
from seatrial_base.errors import BenchError
from tests.constructs.conftest import EvidenceKey, passing_result
from tests.operations.drift.test_drift import OUTPUTS, Live
from tests.operations.test_preflight import refused

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.operations.promotion import TrialEvidence
    from seatrial.specs.yaml_source import Yaml

RESULT = passing_result()
OTHER = json.dumps({"error": "the budget ended"})


@dataclass
class Staging(Live):
    """The stack of staging's endpoint, and the bucket with its trials."""

    listing: Exception | None = None

    def list_objects_v2(self, *, Bucket: str, Prefix: str, MaxKeys: int) -> Mapping[str, object]:  # noqa: N803
        if self.listing is not None:
            raise self.listing
        assert (Bucket, MaxKeys) == ("results", 1000)
        return {"Contents": [{"Key": key} for key in sorted(self.documents) if key.startswith(Prefix)]}


def asked(live: Staging) -> TrialEvidence:
    mine = cast("Any", live)
    return evidence_of_stack("seatrial-dev-chat", "dev-chat", mine, mine)


def staging(**changes: object) -> Staging:
    live = Staging(**changes)  # type: ignore[arg-type]  # the fields of the dataclass
    live.documents |= {"trials/dev-chat/b/r1.json": OTHER, "trials/dev-chat/b/r2.json": RESULT.to_json()}
    return live


def test_the_result_is_told_with_the_request_that_it_was_made_for() -> None:
    evidence = asked(staging(outputs={**OUTPUTS, "TrialReportUri": "s3://results/passed/chat.md"}))
    assert (evidence.result, evidence.request_id) == (RESULT, "r2")
    assert (evidence.result_uri, evidence.report_uri) == (
        "s3://results/passed/chat.json",
        "s3://results/passed/chat.md",
    )
    assert evidence.deployed_digest == OUTPUTS["PlanDigest"]


@pytest.mark.parametrize("garbage", ["", "{", "[]", "null"])
def test_a_document_that_is_no_trial_hides_no_other(garbage: str) -> None:
    live = staging()
    live.documents |= {"trials/dev-chat/b/r0.json": garbage, "trials/dev-chat/b/r0.md": "a report"}
    assert asked(live).request_id == "r2"


def test_what_is_no_json_is_no_trial_whatever_it_holds() -> None:
    live = staging()
    live.documents["trials/dev-chat/b/r0.md"] = RESULT.to_json()
    assert asked(live).request_id == "r2"


def test_a_trial_whose_document_has_expired_is_of_no_known_request() -> None:
    live = staging()
    del live.documents["trials/dev-chat/b/r2.json"]
    evidence = asked(live)
    assert (evidence.result, evidence.request_id) == (RESULT, None)


def test_a_caller_that_may_not_list_the_bucket_promotes_all_the_same() -> None:
    evidence = asked(staging(listing=refused("AccessDenied", "ListObjectsV2")))
    assert (evidence.result, evidence.request_id) == (RESULT, None)


@pytest.mark.parametrize("uri", [None, "unknown"])
def test_a_stack_without_a_result_was_deployed_without_a_trial(uri: str | None) -> None:
    outputs = {name: value for name, value in OUTPUTS.items() if name != "TrialResultUri"}
    evidence = asked(staging(outputs=outputs if uri is None else {**outputs, "TrialResultUri": uri}))
    assert evidence.result is None
    assert evidence.missing_because == "the stack seatrial-dev-chat (UPDATE_COMPLETE) was deployed without one"


def test_a_trial_that_ended_with_an_error_is_no_result() -> None:
    live = staging()
    live.documents["passed/chat.json"] = OTHER
    evidence = asked(live)
    assert evidence.result is None
    assert evidence.missing_because == "it ended with an error: the budget ended (s3://results/passed/chat.json)"


def test_a_missing_stack_and_a_missing_document_are_told() -> None:
    with pytest.raises(BenchError, match="SEA502"):
        asked(staging(status=""))
    live = staging()
    del live.documents["passed/chat.json"]
    with pytest.raises(BenchError, match="SEA501"):
        asked(live)


def test_a_given_file_is_named_with_its_report() -> None:
    evidence = evidence_of_result(RESULT, "out/result.json")
    assert (evidence.result_uri, evidence.report_uri, evidence.deployed_digest) == (
        "out/result.json",
        "out/result.md",
        None,
    )


FIRST, SECOND = EvidenceKey().public, EvidenceKey().public
KEYS = ("promotion", "public_keys")


@pytest.mark.parametrize(
    ("promotion", "keys", "edited"),
    [
        ("{source: dev}", [SECOND], f"{{source: dev, public_keys: [{SECOND}]}}"),
        ("{source: dev, public_keys: []}", [SECOND], f"{{source: dev, public_keys: [{SECOND}]}}"),
        (f"{{public_keys: [{FIRST}]}}", [FIRST, SECOND], f"{{public_keys: [{FIRST}, {SECOND}]}}"),
        ("\n  source: dev", [SECOND], f"\n  source: dev\n  public_keys:\n    - {SECOND}"),
        (
            f"\n  public_keys:\n    - {FIRST} # a",
            [FIRST, SECOND],
            f"\n  public_keys:\n    - {FIRST} # a\n    - {SECOND}",
        ),
        (f"\n  public_keys: [{FIRST}]", [FIRST, SECOND], f"\n  public_keys:\n    - {FIRST}\n    - {SECOND}"),
    ],
)
def test_a_key_is_added_and_nothing_else_of_the_file_changes(promotion: str, keys: list[Yaml], edited: str) -> None:
    head, tail = "# ours\nname: prod\npromotion: ", "\nregion: us-east-1 # here\n"
    assert edited_text(f"{head}{promotion}{tail}", {KEYS: keys}, "prod.yaml") == f"{head}{edited}{tail}"


def test_the_public_half_of_the_signing_key_is_read_from_the_stack_of_the_trial_service() -> None:
    place = EnvironmentSpec.model_validate({"name": "dev", "region": "us-east-1"})
    key, live = EvidenceKey(), staging(outputs={"SigningKey": EvidenceKey().arn})
    read = signing_key(place, cast("Any", live), cast("Any", key))
    assert (read.arn, read.public, len(read.fingerprint)) == (key.arn, key.public, 64)
    with pytest.raises(BenchError, match="SEA584: the stack has no key that signs results"):
        signing_key(place, cast("Any", staging(outputs={})), cast("Any", key))
    key.denied = True
    with pytest.raises(BenchError, match=r"SEA584|SEA511"):
        signing_key(place, cast("Any", live), cast("Any", key))
