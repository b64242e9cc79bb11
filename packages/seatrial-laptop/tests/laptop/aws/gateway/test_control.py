from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from seatrial_base.errors import LocalError
from seatrial_laptop.control import change_control, read_control, reset_control, settings_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import


def test_settings_are_read_changed_and_reset(laptop: Laptop) -> None:
    defaults = reset_control(laptop.state_dir)
    assert change_control(laptop.state_dir, {"instance_start_s": 5}) == {**defaults, "instance_start_s": 5.0}
    assert read_control(laptop.state_dir)["instance_start_s"] == 5.0
    assert reset_control(laptop.state_dir) == defaults == read_control(laptop.state_dir)
    with pytest.raises(LocalError, match="SEA608: sped: Extra inputs are not permitted"):
        change_control(laptop.state_dir, {"sped": 2})


def test_nobody_controls_what_does_not_run(tmp_path: Path) -> None:
    with pytest.raises(LocalError, match="SEA602"):
        read_control(tmp_path)


@pytest.mark.parametrize("words", [["clock_speed"], ["=1"], ["a=1", "a=2"]])
def test_a_word_must_be_a_setting(words: list[str]) -> None:
    with pytest.raises(LocalError, match="SEA608"):
        settings_of(words)


def test_values_are_json_or_text() -> None:
    denied = [{"operation": "DescribeModel", "count": 1}]
    words = ["clock_speed=60", "stuck=chat", "capacity_limit=null", f"access_denied={json.dumps(denied)}", "a=b=c"]
    assert settings_of(words) == {
        "clock_speed": 60,
        "stuck": "chat",
        "capacity_limit": None,
        "access_denied": denied,
        "a": "b=c",
    }


def test_a_denied_operation_is_denied_as_aws_does_it(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    model = laptop.model()
    control(access_denied=[{"operation": "DescribeModel", "count": 1}, {"operation": "InvokeEndpoint", "count": 1}])
    with pytest.raises(ClientError, match="AccessDeniedException"):
        laptop.sagemaker.describe_model(ModelName=model)
    with pytest.raises(ClientError, match="AccessDeniedException"):
        laptop.runtime.invoke_endpoint(EndpointName="none", Body=b"{}")
    assert laptop.sagemaker.describe_model(ModelName=model)["ModelName"] == model


def test_a_new_resource_is_denied_for_a_while(laptop: Laptop, control: Callable[..., dict[str, object]]) -> None:
    old = laptop.model()
    control(iam_propagation_s=3600)
    control(clock_speed=600)
    new = laptop.model()
    with pytest.raises(ClientError, match="AccessDeniedException"):
        laptop.sagemaker.describe_model(ModelName=new)
    control(iam_propagation_s=0)
    assert [laptop.sagemaker.describe_model(ModelName=name)["ModelName"] for name in (old, new)] == [old, new]
