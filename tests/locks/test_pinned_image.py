from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.documents.plan import Decision, Image
from seatrial.locks.changes import keep_digest, pin_image, pin_same_image
from seatrial_base.catalog.images import image_digest
from seatrial_base.errors import SeatrialError
from tests.locks.test_provenance import PROMOTED
from tests.sample_plan import sample_plan

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
DIGEST = "sha256:" + "1" * 64
OTHER = "sha256:" + "2" * 64


def plan_with(uri: str, repository: str, tag: str) -> Plan:
    image: Decision[Image] = Decision(value=Image(uri=uri, repository=repository, tag=tag), because="It is listed.")
    return sample_plan().model_copy(update={"image": image})


PLAN = plan_with(f"{REGISTRY}/djl-inference:0.36.0-lmi27.0.0-cu130", "djl-inference", "0.36.0-lmi27.0.0-cu130")


def test_a_digest_takes_the_place_of_the_tag() -> None:
    pinned = pin_image(PLAN, DIGEST)

    assert pinned.image.value == Image(
        uri=f"{REGISTRY}/djl-inference@{DIGEST}", repository="djl-inference", tag="0.36.0-lmi27.0.0-cu130"
    )
    assert pinned.image.because == (
        "It is listed. The digest is the one that its registry gave for the tag 0.36.0-lmi27.0.0-cu130."
    )
    assert image_digest(pinned.image.value.uri) == DIGEST
    assert image_digest(PLAN.image.value.uri) is None


def test_pinning_again_replaces_the_digest_alone() -> None:
    assert pin_image(pin_image(PLAN, OTHER), DIGEST) == pin_image(PLAN, DIGEST)


def test_a_repository_in_a_folder_keeps_its_place() -> None:
    own = plan_with(f"{REGISTRY}/team/my-tgi:1", "my-tgi", "1")

    assert pin_image(own, DIGEST).image.value.uri == f"{REGISTRY}/team/my-tgi@{DIGEST}"


def test_a_new_plan_for_the_same_tag_keeps_the_locked_digest() -> None:
    assert keep_digest(pin_image(PLAN, DIGEST).model_dump(mode="json"), PLAN) == pin_image(PLAN, DIGEST)


@pytest.mark.parametrize(
    "locked",
    [
        None,
        {},
        {"image": "something else"},
        PLAN.model_dump(mode="json"),
        pin_image(plan_with(f"{REGISTRY}/djl-inference:0.35", "djl-inference", "0.35"), DIGEST).model_dump(mode="json"),
        pin_image(
            plan_with(f"{REGISTRY}/other:0.36.0-lmi27.0.0-cu130", "other", "0.36.0-lmi27.0.0-cu130"), DIGEST
        ).model_dump(mode="json"),
    ],
)
def test_a_plan_for_another_tag_or_none_takes_no_digest(locked: dict[str, object] | None) -> None:
    assert keep_digest(locked, PLAN) is PLAN


def test_a_digest_that_the_spec_fixes_is_kept() -> None:
    fixed = plan_with(f"{REGISTRY}/djl-inference:1@{OTHER}", "djl-inference", "1")

    assert keep_digest(pin_image(PLAN, DIGEST).model_dump(mode="json"), fixed) is fixed


def test_a_plan_that_names_another_image_than_was_asked_about_is_not_pinned() -> None:
    assert pin_same_image(PLAN, PLAN.image.value, DIGEST) == pin_image(PLAN, DIGEST)
    other = Image(uri=f"{REGISTRY}/other:1", repository="other", tag="1")
    with pytest.raises(SeatrialError) as caught:
        pin_same_image(PLAN, other, DIGEST)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.where) == ("SEA350", PLAN.image.value.uri)


def test_what_was_tried_under_another_name_is_promoted_no_more() -> None:
    promoted = PLAN.model_copy(update={"promoted": PROMOTED})
    assert pin_image(promoted, DIGEST).promoted is None
