from __future__ import annotations

import pytest

from benchmarks.living_endpoint.faults import FAULTS, OLD_BOTO3, chosen_faults, faults_of
from seatrial_laptop.aws.faults import ControlSettings
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
