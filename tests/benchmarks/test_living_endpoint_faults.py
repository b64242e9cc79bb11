from __future__ import annotations

import threading
from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.exceptions import ClientError

from benchmarks.living_endpoint.endpoint import environment_of
from benchmarks.living_endpoint.faults import FAULTS, OLD_BOTO3, chosen_faults, faults_of
from benchmarks.living_endpoint.watch import watching
from seatrial_laptop.aws.faults import ControlSettings
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from seatrial_laptop.state import LocalAws
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.living_endpoint.endpoint import LivingEndpoint


@pytest.mark.parametrize("name", FAULTS)
def test_the_control_interface_takes_every_fault(name: str) -> None:
    settings = ControlSettings.model_validate(dict(FAULTS[name]))
    assert (settings == ControlSettings()) is (name == "none")


def test_faults_are_chosen_by_name_and_may_be_on_together() -> None:
    assert chosen_faults("usual,tags_late") == ["usual", "tags_late"]
    assert set(chosen_faults("all")) == {*FAULTS, "old_boto3"} - {"none"}
    with environment({OLD_BOTO3: "/older"}):
        assert faults_of("absent_is_denied+old_boto3") == {"absent_is_denied": True, "function_python_path": "/older"}
    with pytest.raises(KeyError, match="unknown"):
        faults_of("tags_late+unknown")


def default_key(key_id: str) -> str:
    """Return the key that clients of the default session sign with on an embedded AWS that has one."""
    local = LocalAws(1, 1, key_id, "secret")
    with environment_of(EmbeddedAws(local)):
        boto3.client("lambda")
        found = boto3.DEFAULT_SESSION
        credentials = found.get_credentials() if found else None
    return credentials.access_key if credentials else ""


def test_each_of_several_embedded_aws_is_reached_by_its_own_key() -> None:
    """One after the other: the sweep of the second was refused, as boto3 kept the key of the first."""
    with environment({}):
        assert [default_key("AKIAONE"), default_key("AKIATWO")] == ["AKIAONE", "AKIATWO"]
        assert boto3.DEFAULT_SESSION is None


class Idle:
    """An endpoint of which nothing is left."""

    candidates: tuple[str, ...] = ()
    is_scale_in_suspended = False


def refused(code: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": ""}}, "DescribeInferenceComponent")


def test_a_look_that_is_throttled_is_made_again() -> None:
    is_seen = threading.Event()
    answers: Iterator[ClientError | int] = iter([refused("ThrottlingException"), 3, 3])

    def copies() -> int:
        answer = next(answers, 3)
        if isinstance(answer, ClientError):
            raise answer
        is_seen.set()
        return answer

    with watching(cast("LivingEndpoint", Idle()), copies) as seen:
        assert is_seen.wait(30)
    assert set(seen.copies) == {3}


def test_a_look_that_fails_otherwise_fails_the_case() -> None:
    looked = threading.Event()

    def copies() -> int:
        looked.set()
        raise refused("AccessDeniedException")

    with pytest.raises(ClientError, match="AccessDenied"), watching(cast("LivingEndpoint", Idle()), copies):
        looked.wait(30)
