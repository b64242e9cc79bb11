"""`seatrial token` and the tokens that a program renews, as OpenAI's client uses them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from seatrial.cli.app import app
from seatrial.cli.support.specs import own_region
from seatrial_base.errors import SpecError
from seatrial_base.secrets import redacted
from seatrial_load.aws.sigv4 import PREFIX

if TYPE_CHECKING:
    from mypy_boto3_sagemaker_runtime import SageMakerRuntimeClient

REPOSITORY = Path(__file__).parents[2]


def asked(*arguments: str) -> tuple[str, str]:
    """Return what the command prints: to its output, and beside it."""
    ran = CliRunner().invoke(app, ["token", *arguments], catch_exceptions=False)
    assert ran.exit_code == 0, ran.output
    return ran.stdout, ran.stderr


def test_what_it_exports_is_all_that_openais_client_needs(runtime: SageMakerRuntimeClient) -> None:
    import openai  # noqa: PLC0415 (it takes a second)

    out, _ = asked("chat", "--component", "chat-copy", "--region", "us-east-1", "--export")
    exported = dict(re.findall(r"^export (\w+)=(\S+)$", out, re.MULTILINE))
    client = openai.OpenAI(base_url=exported["OPENAI_BASE_URL"], api_key=exported["OPENAI_API_KEY"], max_retries=0)
    answer = client.chat.completions.create(model="", messages=[{"role": "user", "content": "hi"}], max_tokens=2)
    assert answer.usage
    assert answer.usage.completion_tokens == 2


def test_the_alias_of_a_spec_names_the_endpoint(
    runtime: SageMakerRuntimeClient,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(REPOSITORY)
    _, beside = asked("chat", "-e", "dev")
    base_url = f"{os.environ['AWS_ENDPOINT_URL']}/endpoints/chat/inference-components/chat-copy/openai/v1"
    assert base_url in beside


def test_the_token_is_printed_once_and_masked_elsewhere(runtime: SageMakerRuntimeClient) -> None:
    out, beside = asked("chat", "--region", "us-east-1")
    assert out.startswith(PREFIX)
    assert (out.count(PREFIX), PREFIX in beside) == (1, False)
    assert redacted(out) == "sag…\n"


def test_what_an_environment_has_is_given_by_nothing_else() -> None:
    with pytest.raises(SpecError) as refused:
        asked("chat", "-e", "dev", "--region", "us-east-1", "--component", "model")
    assert [problem.place.field for problem in refused.value.problems] == ["--component", "--region"]


def test_the_region_is_that_of_the_variable_which_the_hint_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-west-2")
    assert own_region() == "eu-west-1"
