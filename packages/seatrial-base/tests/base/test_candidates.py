"""Who made a component is told by its tags, whole; its name proves nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.tags import (
    LONGEST_NAME,
    candidate_name,
    candidate_tags,
    is_candidate_name,
    is_reserved_name,
    maker_of,
)

DE, FR = (f"productioneurope-customer-support-assistant-{land}" for land in ("de", "fr"))
WORDS = st.sampled_from(
    ["chat", "hr", "candidate", "candidate-", "-candidate-0a1b2c3d", "model", "adapter", "0a1b2c3d"]
)
NAMES = st.lists(WORDS, min_size=1, max_size=8).map(lambda words: f"dev-{'-'.join(words)}"[:57].rstrip("-"))


def test_long_names_with_one_beginning_share_no_candidate() -> None:
    assert DE[:44] == FR[:44]
    assert candidate_name(DE, "request-1") != candidate_name(FR, "request-1")


def test_a_short_name_is_kept_whole() -> None:
    assert candidate_name("dev-chat", "request-1") == "dev-chat-candidate-19f1064b"


@given(NAMES, st.text(min_size=1))
def test_a_candidates_name_is_one_of_sagemaker(endpoint: str, request_id: str) -> None:
    name = candidate_name(endpoint, request_id)
    assert len(name) <= LONGEST_NAME
    assert is_candidate_name(name)


@given(NAMES, NAMES, st.uuids().map(str))
def test_a_candidate_belongs_to_its_endpoint_alone(endpoint: str, other: str, request_id: str) -> None:
    name, tags = candidate_name(endpoint, request_id), candidate_tags("dev", endpoint, request_id)
    assert maker_of(name, endpoint, tags) == "trial service"
    assert (maker_of(name, other, tags) == "trial service") == (other == endpoint)


@pytest.mark.parametrize(
    ("name", "tags", "maker"),
    [
        ("dev-chat-candidate-19f1064b", {}, "unknown"),
        ("dev-chat-candidate-19f1064b", candidate_tags("dev", "dev-chat", "request-1"), "trial service"),
        ("dev-chat-candidate-19f1064b", candidate_tags("dev", "dev-chat", "request-2"), "other"),
        (
            "dev-chat-candidate-19f1064b",
            {**candidate_tags("dev", "dev-chat", "request-1"), "seatrial:owner": "x"},
            "other",
        ),
        ("dev-chat-candidate-19f1064b", {"seatrial:environment": "dev"}, "older release"),
        ("dev-chat-candidate-19f1064b", {"seatrial:environment": "prod"}, "other"),
        ("dev-chat-candidate-19f1064b", {"team": "hr"}, "other"),
        ("dev-chat-candidate-19F1064B", {"seatrial:environment": "dev"}, "other"),
        ("dev-chat-candidate-19f1064b-model", {"seatrial:environment": "dev"}, "other"),
        ("dev-chat-candidate-19f1064b\n", {"seatrial:environment": "dev"}, "other"),
        ("dev-chat-x-candidate-19f1064b", {"seatrial:environment": "dev"}, "other"),
    ],
)
def test_maker(name: str, tags: dict[str, str], maker: str) -> None:
    assert maker_of(name, "dev-chat", tags) == maker


def test_what_an_older_release_cut_is_its_endpoints() -> None:
    assert (
        maker_of(f"{DE[:44]}-candidate-19f1064b", DE, {"seatrial:environment": "productioneurope"}) == "older release"
    )


@pytest.mark.parametrize(
    ("name", "reserved"),
    [
        ("candidate-0a1b2c3d", True),
        ("hr-candidate-0a1b2c3d", True),
        ("hr-candidate-ranker", False),
        ("candidate-screening", False),
        ("candidate-0a1b2c3", False),
        ("candidate-0a1b2c3de", False),
        ("mycandidate-0a1b2c3d", False),
    ],
)
def test_reserved_names(name: str, reserved: bool) -> None:  # noqa: FBT001 (a row of the table)
    assert is_reserved_name(name) == reserved
