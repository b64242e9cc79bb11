from __future__ import annotations

import boto3
import pytest

from benchmarks.living_endpoint.endpoint import environment_of
from benchmarks.living_endpoint.faults import FAULTS, OLD_BOTO3, chosen_faults, faults_of
from seatrial_laptop.aws.faults import ControlSettings
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from seatrial_laptop.running import LocalAws
from tests.environment import environment


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
    local = LocalAws("http://127.0.0.1:1", "us-east-1", "000000000000", 1, key_id, "secret")
    with environment_of(EmbeddedAws(local, local.region)):
        boto3.client("lambda")
        found = boto3.DEFAULT_SESSION
        credentials = found.get_credentials() if found else None
    return credentials.access_key if credentials else ""


def test_each_of_several_embedded_aws_is_reached_by_its_own_key() -> None:
    """One after the other: the sweep of the second was refused, as boto3 kept the key of the first."""
    with environment({}):
        assert [default_key("AKIAONE"), default_key("AKIATWO")] == ["AKIAONE", "AKIATWO"]
        assert boto3.DEFAULT_SESSION is None
