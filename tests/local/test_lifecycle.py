from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import pytest

from seatrial.errors import LocalError
from seatrial.local import lifecycle

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
RUNNING = lifecycle.LocalAws(
    endpoint_url="http://127.0.0.1:4566",
    region="us-east-1",
    account="000000000000",
    pid=1,
    access_key_id="AKIDEXAMPLE",
    secret_access_key="the-secret",
)


def await_none(of: Callable[[str], list[int]], word: str) -> None:
    deadline = time.monotonic() + 10
    while of(word) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert of(word) == []


def serve_one_model(local: lifecycle.LocalAws, name: str) -> None:
    client = boto3.client(
        "sagemaker",
        endpoint_url=local.endpoint_url,
        region_name=local.region,
        aws_access_key_id=local.access_key_id,
        aws_secret_access_key=local.secret_access_key,
    )
    container = {"Image": "r/djl-inference:0.36.0-lmi27", "Environment": {"HF_MODEL_ID": "m"}}
    client.create_model(ModelName=name, ExecutionRoleArn=ROLE, PrimaryContainer=container)  # type: ignore[arg-type]  # the stub wants its own dictionary
    client.create_endpoint_config(
        EndpointConfigName=name,
        ProductionVariants=[
            {"VariantName": "main", "ModelName": name, "InstanceType": "ml.g5.xlarge", "InitialInstanceCount": 1}
        ],
    )
    client.create_endpoint(EndpointName=name, EndpointConfigName=name)
    deadline = time.monotonic() + 30
    while client.describe_endpoint(EndpointName=name)["EndpointStatus"] == "Creating":
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_nothing_heavy_is_imported() -> None:
    code = (
        "import sys, seatrial.local.lifecycle; "
        "print([name for name in ('ministack', 'botocore', 'boto3', 'xllamacpp', 'hypercorn') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "[]\n"


def test_up_and_down_are_idempotent_and_leave_nothing(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    assert lifecycle.down(tmp_path) is False
    first = lifecycle.up(state_dir=tmp_path)
    assert lifecycle.up(state_dir=tmp_path) == first == lifecycle.running(tmp_path)
    serve_one_model(first, "chat")
    (endpoint,) = lifecycle.status(tmp_path).endpoints
    assert (endpoint.name, endpoint.status, len(endpoint.ports)) == ("chat", "InService", 1)
    assert [path.name for path in lifecycle.log_files(tmp_path)] == ["aws.log", "chat-main-1.log"]
    assert lifecycle.down(tmp_path) is True
    assert lifecycle.status(tmp_path) == lifecycle.LocalStatus(local=None)
    await_none(processes, str(tmp_path))
    assert lifecycle.down(tmp_path) is False


def test_a_killed_emulator_takes_its_engines_with_it(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    local = lifecycle.up(state_dir=tmp_path)
    serve_one_model(local, "orphan")
    assert len(processes(str(tmp_path))) == 2
    os.kill(local.pid, signal.SIGKILL)
    await_none(processes, str(tmp_path))
    assert lifecycle.status(tmp_path).running is False
    assert lifecycle.down(tmp_path) is False


def test_a_recycled_process_number_is_never_signalled(tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_text(f'{{"pid": {os.getpid()}, "port": 1}}')
    assert lifecycle.down(tmp_path) is False


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalError) as refused:
            lifecycle.up(state_dir=tmp_path, port=port)
    assert str(refused.value) == (
        f"SEA604: port {port} of 127.0.0.1 is in use\n  hint: choose another port, or none: any free one is taken"
    )


def test_what_does_not_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as refused:
        lifecycle.running(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: SEA602: no embedded AWS runs with this state folder\n"
        "  hint: start it with: seatrial local up; or name the folder of another with --state"
    )


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "OPTIONAL_MODULES", ("hypercorn", "a_package_that_is_not_there"))
    with pytest.raises(LocalError) as refused:
        lifecycle.up(state_dir=tmp_path)
    assert str(refused.value) == (
        "SEA603: the local mode needs optional packages that are not installed: a_package_that_is_not_there\n"
        "  hint: pip install 'seatrial[local]'"
    )


def test_a_start_that_fails_shows_the_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "server_environment", lambda _port, **_more: {"PATH": "", "PYTHONHOME": "/nowhere"})
    with pytest.raises(LocalError) as refused:
        lifecycle.up(state_dir=tmp_path)
    first, *_ = str(refused.value).splitlines()
    assert first == "SEA601: the embedded AWS did not start; its last lines:"
    assert "encodings" in str(refused.value)


def test_children_see_the_embedded_aws_and_no_real_account(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_PROFILE", "production")
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "123456789012")
    found = {
        name: value for name, value in lifecycle.child_variables(RUNNING).items() if name.startswith(("AWS_", "CDK_"))
    }
    assert found == {
        "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE",
        "AWS_SECRET_ACCESS_KEY": "the-secret",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:4566",
        "AWS_REGION": "us-east-1",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": "/dev/null",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_EC2_METADATA_DISABLED": "true",
        "CDK_DEFAULT_ACCOUNT": "000000000000",
        "CDK_DEFAULT_REGION": "us-east-1",
        "CDK_DISABLE_CLI_TELEMETRY": "true",
    }
    assert (
        found.items()
        >= {
            name: value for name, value in lifecycle.environment(RUNNING).items() if name.startswith(("AWS_", "CDK_"))
        }.items()
    )


def test_a_relative_folder_means_the_same_to_every_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cache: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    state_dir = Path("state/local")
    try:
        started = lifecycle.up(state_dir=state_dir)
        assert lifecycle.status(state_dir).local == started
        assert lifecycle.status(tmp_path / state_dir).local == started
    finally:
        stopped = lifecycle.down(state_dir)
    assert stopped
    assert not (state_dir / "tmp").exists()
