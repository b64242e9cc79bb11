"""The embedded AWS stops at once, whatever runs on it: what it would leave when it had to be killed is not there."""

from __future__ import annotations

import io
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from seatrial_laptop import lifecycle
from seatrial_laptop.state import server_scratch_folder

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from mypy_boto3_lambda import LambdaClient

CODE = """
import pathlib, time

def handler(event, context):
    pathlib.Path(event["began"]).touch()
    time.sleep(300)
"""


def functions(local: lifecycle.LocalAws) -> LambdaClient:
    """Return a client of Lambda, and make the role `any`."""
    variables = lifecycle.environment(local)
    place: Any = {
        "endpoint_url": local.endpoint_url,
        "region_name": local.region,
        "aws_access_key_id": variables["AWS_ACCESS_KEY_ID"],
        "aws_secret_access_key": variables["AWS_SECRET_ACCESS_KEY"],
        "config": Config(proxies={}, retries={"max_attempts": 0}),
    }
    boto3.client("iam", **place).create_role(RoleName="any", AssumeRolePolicyDocument="{}")
    client: LambdaClient = boto3.client("lambda", **place)
    return client


def archive(code: str) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr("slow.py", code)
    return buffer.getvalue()


def invoke(client: LambdaClient, began: Path) -> None:
    """Invoke the function and wait for its answer, which never comes."""
    with suppress(BotoCoreError, ClientError):
        client.invoke(FunctionName="slow", Payload=f'{{"began": "{began}"}}'.encode())


def test_a_request_that_awaits_a_function_does_not_hold_up_the_stop(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    state, began = tmp_path / "aws", tmp_path / "began"
    client = functions(lifecycle.start_embedded_aws(state_dir=state))
    client.create_function(
        FunctionName="slow",
        Runtime="python3.13",
        Role="arn:aws:iam::000000000000:role/any",
        Handler="slow.handler",
        Code={"ZipFile": archive(CODE)},
        Timeout=600,
    )
    with ThreadPoolExecutor() as beside:
        invocation = beside.submit(invoke, client, began)
        while not began.exists() and not invocation.done():
            time.sleep(0.02)
        assert lifecycle.stop_embedded_aws(state) is True
    assert began.exists()
    assert not server_scratch_folder(state).exists()
    assert processes(str(state)) == []
