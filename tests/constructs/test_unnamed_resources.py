from __future__ import annotations

import pytest

from seatrial_cdk.policy import UNNAMED_RESOURCE_ACTIONS, allow_unnamed


def test_an_action_without_a_documented_reason_is_not_allowed_on_everything() -> None:
    with pytest.raises(KeyError, match="s3:GetObject"):
        allow_unnamed("ecr:GetAuthorizationToken", "s3:GetObject")


def test_every_action_has_its_reason() -> None:
    assert all(UNNAMED_RESOURCE_ACTIONS.values())
