from __future__ import annotations

import io
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import zipfile
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.config import Config

from seatrial_base.errors import LocalError
from seatrial_laptop import lifecycle
from seatrial_laptop.control import read_control
from seatrial_laptop.state import LocalAws, hold_lock, lock_holder
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable

ROLE = "arn:aws:iam::000000000000:role/an-execution-role"
RUNNING = lifecycle.LocalAws(1, 4566, "AKIDEXAMPLE", "the-secret")


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
        "import sys, seatrial_laptop.lifecycle; "
        "print([name for name in ('ministack', 'botocore', 'boto3', 'xllamacpp', 'hypercorn') if name in sys.modules])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert found == "[]\n"


def test_up_and_down_are_idempotent_and_leave_nothing(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    assert lifecycle.stop_embedded_aws(tmp_path) is False
    first = lifecycle.start_embedded_aws(state_dir=tmp_path)
    assert lifecycle.start_embedded_aws(state_dir=tmp_path) == first == lifecycle.running(tmp_path)
    serve_one_model(first, "chat")
    (endpoint,) = lifecycle.read_local_status(tmp_path).endpoints
    assert (endpoint.name, endpoint.status, len(endpoint.ports)) == ("chat", "InService", 1)
    assert [path.name for path in lifecycle.log_files(tmp_path)] == ["aws.log", "chat-main-1.log"]
    assert lifecycle.stop_embedded_aws(tmp_path) is True
    assert lifecycle.read_local_status(tmp_path) == lifecycle.LocalStatus(local=None)
    await_none(processes, str(tmp_path))
    assert lifecycle.stop_embedded_aws(tmp_path) is False


def test_an_embedded_aws_is_the_account_that_is_asked_for(tmp_path: Path, cache: Path) -> None:
    local = lifecycle.start_embedded_aws(state_dir=tmp_path, account="111111111111")
    try:
        assert lifecycle.start_embedded_aws(state_dir=tmp_path) == local == lifecycle.running(tmp_path)
        assert (local.account, lifecycle.environment(local)["CDK_DEFAULT_ACCOUNT"]) == ("111111111111",) * 2
        role = "arn:aws:iam::111111111111:role/deploy"
        with environment(lifecycle.child_variables(local)):
            sts, iam, sagemaker = boto3.client("sts"), boto3.client("iam"), boto3.client("sagemaker")
        assert sts.get_caller_identity()["Account"] == local.account
        root = {"AWS": "arn:aws:iam::111111111111:root"}
        trust = {"Statement": {"Effect": "Allow", "Principal": root, "Action": "sts:AssumeRole"}}
        iam.create_role(RoleName="deploy", AssumeRolePolicyDocument=json.dumps(trust))
        assumed = sts.assume_role(RoleArn=role, RoleSessionName="session")["AssumedRoleUser"]["Arn"]
        assert assumed == "arn:aws:sts::111111111111:assumed-role/deploy/session"
        made = sagemaker.create_model(
            ModelName="chat",
            ExecutionRoleArn=role,
            PrimaryContainer={"Image": "r/djl-inference:0.36.0-lmi27", "Environment": {"HF_MODEL_ID": "m"}},
        )
        assert made["ModelArn"] == "arn:aws:sagemaker:us-east-1:111111111111:model/chat"
        with pytest.raises(LocalError) as caught:
            lifecycle.start_embedded_aws(state_dir=tmp_path, account="222222222222")
        assert caught.value.problems[0].rule == "SEA480"
    finally:
        lifecycle.stop_embedded_aws(tmp_path)


def test_a_killed_emulator_takes_its_engines_with_it(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    local = lifecycle.start_embedded_aws(state_dir=tmp_path)
    serve_one_model(local, "orphan")
    assert len(processes(str(tmp_path))) == 2
    os.kill(local.pid, signal.SIGKILL)
    await_none(processes, str(tmp_path))
    assert lifecycle.read_local_status(tmp_path).running is False
    assert lifecycle.stop_embedded_aws(tmp_path) is False


def test_a_suspended_one_does_not_answer_and_a_killed_one_is_dead(tmp_path: Path, cache: Path) -> None:
    local = lifecycle.start_embedded_aws(state_dir=tmp_path)
    os.kill(local.pid, signal.SIGSTOP)
    try:
        found = lifecycle.read_local_status(tmp_path)
        assert (found.state, found.local, found.running) == ("not answering", local, False)
        with pytest.raises(LocalError) as caught:
            read_control(tmp_path)
        assert f"kill -CONT {local.pid}" in caught.value.problems[0].hint
    finally:
        os.kill(local.pid, signal.SIGCONT)
    assert lifecycle.read_local_status(tmp_path).state == "running"
    os.kill(local.pid, signal.SIGKILL)
    deadline = time.monotonic() + 10
    while lock_holder(tmp_path) is not None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert lifecycle.read_local_status(tmp_path) == lifecycle.LocalStatus(local=None, state="killed")


def test_a_start_beside_a_suspended_one_says_who_holds_the_folder(
    tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = lifecycle.start_embedded_aws(state_dir=tmp_path)
    monkeypatch.setattr(lifecycle, "START_S", 1.0)
    os.kill(local.pid, signal.SIGSTOP)
    try:
        with pytest.raises(LocalError) as caught:
            lifecycle.start_embedded_aws(state_dir=tmp_path)
    finally:
        os.kill(local.pid, signal.SIGCONT)
        lifecycle.stop_embedded_aws(tmp_path)
    (problem,) = caught.value.problems
    assert (problem.rule, problem.message) == ("SEA601", f"the embedded AWS (process {local.pid}) does not answer")
    assert f"kill -CONT {local.pid}" in problem.hint


def test_one_that_holds_the_folder_and_has_no_state_yet_is_starting(tmp_path: Path) -> None:
    held = hold_lock(tmp_path)
    assert held is not None
    with held:
        assert lifecycle.read_local_status(tmp_path).state == "starting"
    assert lifecycle.read_local_status(tmp_path).state == "not running"


@pytest.mark.parametrize("body", [b"", b"[]", b"{}", b"{", b'{"pid": 1}', b"\xff", b"[" * 100_000])
def test_what_answers_otherwise_than_an_embedded_aws_is_none(tmp_path: Path, body: bytes) -> None:
    class Other(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None: ...

    held = hold_lock(tmp_path)
    assert held is not None
    with held, ThreadingHTTPServer(("127.0.0.1", 0), Other) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        held.write_state(LocalAws(os.getpid(), server.server_port, "a", "b"))
        assert lifecycle.read_local_status(tmp_path).state == "not answering"
        server.shutdown()


def test_a_recycled_process_number_is_never_signalled(tmp_path: Path) -> None:
    (tmp_path / "aws.json").write_text(f'{{"pid": {os.getpid()}, "port": 1}}')
    assert lifecycle.stop_embedded_aws(tmp_path) is False


def test_a_taken_port_is_told(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(LocalError) as refused:
            lifecycle.start_embedded_aws(state_dir=tmp_path, port=port)
    assert str(refused.value) == (
        f"SEA604: port {port} of 127.0.0.1 is in use\n  hint: choose another port, or leave it out for a free one"
    )


def test_what_does_not_run_is_told(tmp_path: Path) -> None:
    with pytest.raises(LocalError) as refused:
        lifecycle.running(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path}: SEA602: no embedded AWS is running with this state folder\n"
        "  hint: start it (seatrial local up), or give another folder with --state"
    )


def test_missing_packages_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "OPTIONAL_MODULES", ("hypercorn", "a_package_that_is_not_there"))
    with pytest.raises(LocalError) as refused:
        lifecycle.start_embedded_aws(state_dir=tmp_path)
    assert str(refused.value) == (
        "SEA603: missing packages: a_package_that_is_not_there\n  hint: pip install 'seatrial[local]'"
    )


def test_a_start_that_fails_shows_the_last_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lifecycle, "server_environment", lambda _port, **_more: {"PATH": "", "PYTHONHOME": "/nowhere"})
    with pytest.raises(LocalError) as refused:
        lifecycle.start_embedded_aws(state_dir=tmp_path)
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
        started = lifecycle.start_embedded_aws(state_dir=state_dir)
        assert lifecycle.read_local_status(state_dir).local == started
        assert lifecycle.read_local_status(tmp_path / state_dir).local == started
    finally:
        stopped = lifecycle.stop_embedded_aws(state_dir)
    assert stopped
    assert not (state_dir / "tmp").exists()


def test_the_secret_does_not_show() -> None:
    assert "the-secret" not in repr(RUNNING)


def test_each_start_has_a_key_of_its_own_that_only_the_user_can_read(tmp_path: Path, cache: Path) -> None:
    keys = []
    for _ in range(2):
        local = lifecycle.start_embedded_aws(state_dir=tmp_path / "state")
        try:
            keys.append((local.access_key_id, local.secret_access_key))
            modes = {
                path.name: path.stat().st_mode & 0o777 for path in [tmp_path / "state", *files_in(tmp_path / "state")]
            }
            command = Path(f"/proc/{local.pid}/cmdline").read_bytes() + Path(f"/proc/{local.pid}/environ").read_bytes()
            log = (tmp_path / "state" / "logs" / "aws.log").read_bytes()
        finally:
            lifecycle.stop_embedded_aws(tmp_path / "state")
        files = ("aws.json", "aws.lock", "aws.log", "clock")
        assert modes == {"state": 0o700, **dict.fromkeys(files, 0o600)}
        assert not [part for part in keys[-1] if part.encode() in command + log]
    assert len({part for key in keys for part in key}) == 4


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_function_sees_nothing_of_the_user(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_SECRET_OF_THE_USER", "x")
    monkeypatch.setenv("HF_TOKEN", "x")
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    code = "import os, tempfile\ndef handler(event, context): return {**os.environ, 'made in': tempfile.gettempdir()}\n"
    scratch = tmp_path / "tmp"
    local = lifecycle.start_embedded_aws(state_dir=tmp_path)
    try:
        found = invoked(local, code)
    finally:
        lifecycle.stop_embedded_aws(tmp_path)
    assert (found["HOME"], found["TMPDIR"], found["made in"]) == (f"{scratch}/home", str(scratch), str(scratch))
    assert (found["AWS_ACCESS_KEY_ID"][:4], found["OWN"]) == ("ASIA", "its own")
    assert not {local.access_key_id, local.secret_access_key} & {*found.values()}
    assert not {"A_SECRET_OF_THE_USER", "HF_TOKEN", "HTTP_PROXY", "XDG_CACHE_HOME", "USER"} & found.keys()


def invoked(local: lifecycle.LocalAws, code: str) -> dict[str, str]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("index.py", code)
    place: Any = {
        "endpoint_url": local.endpoint_url,
        "region_name": local.region,
        "aws_access_key_id": local.access_key_id,
        "aws_secret_access_key": local.secret_access_key,
        "config": Config(proxies={}),
    }
    boto3.client("iam", **place).create_role(RoleName=ROLE.rpartition("/")[2], AssumeRolePolicyDocument="{}")
    client = boto3.client("lambda", **place)
    client.create_function(
        FunctionName="tell",
        Runtime="python3.12",
        Role=ROLE,
        Handler="index.handler",
        Code={"ZipFile": archive.getvalue()},
        Environment={"Variables": {"OWN": "its own"}},
    )
    found: dict[str, str] = json.loads(client.invoke(FunctionName="tell")["Payload"].read())
    return found


@pytest.mark.parametrize("harm", ["remove the folder", "remove the lock", "replace the lock", "change the state"])
def test_an_embedded_aws_that_nothing_could_stop_any_more_stops_itself(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]], harm: str
) -> None:
    state_dir = tmp_path / "state"
    local = lifecycle.start_embedded_aws(state_dir=state_dir)
    serve_one_model(local, "orphan")
    assert len(processes(str(state_dir))) == 2
    lock = state_dir / "aws.lock"
    if harm == "remove the folder":
        shutil.rmtree(state_dir)
    elif harm == "change the state":
        (state_dir / "aws.json").write_text("{")
    else:
        lock.unlink()
        if harm == "replace the lock":
            lock.write_text(str(local.pid))
    await_none(processes, str(state_dir))
    assert lifecycle.stop_embedded_aws(state_dir) is False


@pytest.mark.parametrize("text", ["", "{", "[]", '{"pid": "x"}', '{"pid": 1, "port": 4566}', "null"])
def test_a_state_that_is_not_what_was_written_is_told(tmp_path: Path, text: str) -> None:
    lock = hold_lock(tmp_path)
    assert lock
    with lock:
        (tmp_path / "aws.json").write_text(text)
        for ask in (lifecycle.read_local_status, lifecycle.running):
            with pytest.raises(LocalError) as refused:
                ask(tmp_path)
            assert str(refused.value) == (
                f"{tmp_path}: SEA607: an embedded AWS is running, but aws.json was changed\n"
                "  hint: it stops within seconds; otherwise run: seatrial local down"
            )


def test_the_state_of_another_folder_is_told_and_its_process_left_alone(tmp_path: Path) -> None:
    lock = hold_lock(tmp_path)
    assert lock
    with lock:
        (tmp_path / "aws.json").write_text('{"pid": 2, "port": 4566, "access_key_id": "A", "secret_access_key": "b"}')
        with pytest.raises(LocalError, match="SEA607"):
            lifecycle.read_local_status(tmp_path)
        assert lock_holder(tmp_path) == os.getpid()


def test_down_without_any_number_of_the_process_is_told(tmp_path: Path) -> None:
    lock = hold_lock(tmp_path)
    assert lock
    with lock:
        (tmp_path / "aws.lock").write_text("")
        (tmp_path / "aws.json").write_text("\0")
        with pytest.raises(LocalError, match="SEA607: an embedded AWS is running"):
            lifecycle.stop_embedded_aws(tmp_path)


def test_down_stops_an_embedded_aws_whose_state_is_corrupt(
    tmp_path: Path, processes: Callable[[str], list[int]]
) -> None:
    lifecycle.start_embedded_aws(state_dir=tmp_path)
    (tmp_path / "aws.json").write_text("{")
    lifecycle.stop_embedded_aws(tmp_path)  # it may have stopped itself meanwhile
    await_none(processes, str(tmp_path))


def test_a_start_after_a_crash_says_so_once_and_removes_what_was_left(
    tmp_path: Path, cache: Path, processes: Callable[[str], list[int]]
) -> None:
    local = lifecycle.start_embedded_aws(state_dir=tmp_path)
    serve_one_model(local, "left")
    (engine,) = set(processes(str(tmp_path))) - {local.pid}
    os.kill(engine, signal.SIGSTOP)  # it would not notice the end of its parent
    os.kill(local.pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while not lifecycle.was_killed(tmp_path):  # its lock is held until the process is gone
        assert time.monotonic() < deadline
        time.sleep(0.05)
    again = lifecycle.start_embedded_aws(state_dir=tmp_path)
    try:
        assert not lifecycle.was_killed(tmp_path)
        await_gone(engine)
        assert processes(str(tmp_path)) == [again.pid]
        assert not (tmp_path / "copies").exists()
        assert lifecycle.read_local_status(tmp_path).endpoints == ()
    finally:
        lifecycle.stop_embedded_aws(tmp_path)
    assert not lifecycle.was_killed(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["aws.lock", "logs"]


def await_gone(pid: int) -> None:
    deadline = time.monotonic() + 10
    while Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_bytes():
        assert time.monotonic() < deadline
        time.sleep(0.05)


FOREIGN = {
    "AWS_PROFILE": "production",
    "AWS_DEFAULT_PROFILE": "production",
    "AWS_SESSION_TOKEN": "a-real-token",
    "AWS_ENDPOINT_URL_S3": "https://s3.eu-west-1.amazonaws.com",
    "AWS_ENDPOINT_URL_SAGEMAKER_RUNTIME": "https://elsewhere",
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true",
    "AWS_USE_FIPS_ENDPOINT": "true",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://169.254.170.2/",
    "AWS_A_VARIABLE_OF_NEXT_YEAR": "x",
    "CDK_DEFAULT_ACCOUNT": "123456789012",
}


def test_the_printed_lines_leave_a_shell_with_the_embedded_aws_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in FOREIGN.items():
        monkeypatch.setenv(name, value)
    script = "\n".join([*lifecycle.exports(RUNNING), "env -0"])
    said = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, check=True).stdout
    found = dict(line.split("=", 1) for line in said.split("\0") if line.startswith(("AWS_", "CDK_")))
    wanted = lifecycle.environment(RUNNING)
    assert found == {name: value for name, value in wanted.items() if name.startswith(("AWS_", "CDK_"))}
    child = lifecycle.child_variables(RUNNING)
    assert {name: value for name, value in child.items() if name.startswith(("AWS_", "CDK_"))} == found


@pytest.mark.parametrize("name", ["AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_SECURITY_TOKEN", "AWS_CA_BUNDLE"])
def test_the_printed_lines_unset_what_is_known_though_it_is_not_set_here(name: str) -> None:
    assert f"unset {name}" in lifecycle.exports(RUNNING)


def test_the_hosts_that_the_user_reaches_without_a_proxy_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "intranet.example, .corp; touch x")
    monkeypatch.setenv("no_proxy", "10.0.0.0/8,127.0.0.1")
    hosts = "intranet.example,.corp; touch x,10.0.0.0/8,127.0.0.1,localhost"
    for found in (lifecycle.environment(RUNNING), lifecycle.child_variables(RUNNING)):
        assert (found["NO_PROXY"], found["no_proxy"]) == (hosts, hosts)
    assert f"export NO_PROXY='{hosts}'" in lifecycle.exports(RUNNING)
