"""What a team may write when it launches a product: no text that CloudFormation would resolve to a secret."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.product import load_product
from seatrial_stacks.publish_products import parameters
from tests.sample_product import write_product

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("reference", ["{{resolve:secretsmanager:prod/db}}", "{{resolve:ssm:/prod/key}}@example.com"])
def test_no_parameter_takes_a_dynamic_reference(tmp_path: Path, reference: str) -> None:
    free = {"alarm_topic": True, "alarm_email": True}
    made = parameters(load_product(write_product(tmp_path, parameters=free), tmp_path / "environments"), "lab")
    texts = {name: each for name, each in made.items() if isinstance(each, dict) and each["Type"] == "String"}
    assert {
        name for name, each in texts.items() if "AllowedValues" not in each and "AllowedPattern" not in each
    } == set()
    patterns = [each["AllowedPattern"] for each in texts.values() if "AllowedPattern" in each]
    assert [pattern for pattern in patterns if re.fullmatch(str(pattern), reference)] == []
