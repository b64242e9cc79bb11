"""What a transcript hides: each kind of secret once, and nothing that an error says."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.transcript.masks import LONGEST_TEXT, masked, masked_text

if TYPE_CHECKING:
    from seatrial_base.printer import Json


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("arn:aws:iam::123456789012:role/chat", "arn:aws:iam::ACCOUNT:role/chat"),
        ("cdk-hnb659fds-assets-123456789012-us-east-1", "cdk-hnb659fds-assets-ACCOUNT-us-east-1"),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/x", "ACCOUNT.dkr.ecr.us-east-1.amazonaws.com/x"),
        (
            "User: arn:aws:sts::123456789012:assumed-role/Admin/jane@example.com is not authorized",
            "User: arn:aws:sts::ACCOUNT:assumed-role/Admin/SESSION is not authorized",
        ),
        ("%22arn%3Aaws%3Aiam%3A%3A123456789012%3Auser%2Fjane%22", '"arn:aws:iam::ACCOUNT:user/USER"'),
        ("arn:aws:iam::123456789012:user/jane", "arn:aws:iam::ACCOUNT:user/USER"),
        ("AROAJ55FANTEXAMPLE:jane", "PRINCIPAL:jane"),
        ("owner jane.doe@example.com", "owner EMAIL"),
        ("token hf_abcdefghijklmnopqrstuvwxyz012345", "token hf_…"),
    ],
)
def test_a_text_is_masked(text: str, shown: str) -> None:
    assert masked_text(text, {}) == shown


@pytest.mark.parametrize(
    "text",
    [
        "arn:aws:sts::ACCOUNT:assumed-role/seatrial-sandbox-trials-Role/seatrial-sandbox-trials is not authorized",
        'Could not find inference component "sandbox-absent-model"',
        "883d9d926fd1db641234567890123456789012ab",
    ],
)
def test_what_an_error_says_stays(text: str) -> None:
    assert masked_text(text, {}) == text


def test_a_known_text_is_hidden_wherever_it_stands() -> None:
    assert masked_text("bucket-acme-internal-x", {"acme-internal": "NAME"}) == "bucket-NAME-x"


def test_a_name_tells_what_its_value_is() -> None:
    request: Json = {
        "Environment": {"HF_TOKEN": "q8Zr4mVx0aLk7Tn2", "MODEL": "Qwen/Qwen2.5-0.5B-Instruct"},
        "Tags": [{"Key": "api_key", "Value": "q8Zr4mVx0aLk7Tn2"}, {"Key": "team", "Value": "search"}],
        "AccessKey": {"SecretAccessKey": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzzzzzzzz"},
    }
    told = f"{masked(request, {})}"
    assert "q8Zr4mVx0aLk7Tn2" not in told
    assert "wJalr" not in told
    assert "Qwen/Qwen2.5-0.5B-Instruct" in told
    assert "search" in told


def test_a_long_text_is_cut_behind_its_masks() -> None:
    told = masked_text("a " * LONGEST_TEXT + "123456789012", {})
    assert "123456789012" not in told
    assert told.endswith(f"({2 * LONGEST_TEXT + len('ACCOUNT')} characters)")
