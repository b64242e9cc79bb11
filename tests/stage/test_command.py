"""`seatrial stage` as a user runs it: what it tells, its exit codes, and Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Protocol

import pytest

from seatrial.stage.destination import MANIFEST
from seatrial_base.units import MIB

if TYPE_CHECKING:
    from pathlib import Path

    from tests.command_line import CommandLine
    from tests.stage.conftest import Bucket

LONGEST_S = 60.0


def command(aws: dict[str, str], *arguments: str | Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "seatrial.cli", "stage", *arguments],
        env=os.environ | aws,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


class Run(Protocol):
    def __call__(self, *arguments: str | Path) -> tuple[int, str, str]: ...


@pytest.fixture
def run(aws: dict[str, str], command_line: CommandLine, tmp_path: Path) -> Run:
    def run(*arguments: str | Path) -> tuple[int, str, str]:
        done = command_line.run("stage", *map(str, arguments), folder=tmp_path, variables=aws)
        return done.returncode, done.stdout, done.stderr

    return run


def test_it_copies_and_tells_what_to_write_in_the_spec(run: Run, bucket: Bucket, model: Path) -> None:
    uri = bucket.fresh().uri
    assert run(model, "--to", uri, "--exclude", "*.safetensors") == (
        0,
        "3 files, 0.0 GiB: 3 copied, 0 there already, all checked\n"
        f"manifest: {uri}{MANIFEST}\n"
        f"in the spec:\n  model:\n    s3_uri: {uri}\n"
        f"    config_file: {model.as_posix()}/config.json  # relative to the spec\n",
        "",
    )
    code, output, _ = run(model, "--to", uri, "--exclude", "*.safetensors")
    assert (code, output.splitlines()[0]) == (0, "3 files, 0.0 GiB: 0 copied, 3 there already, all checked")


def test_a_dry_run_writes_nothing(run: Run, bucket: Bucket, model: Path) -> None:
    destination = bucket.fresh()
    assert run(model, "--to", destination.uri, "--dry-run", "--include", "*.json") == (
        0,
        "copy                23  config.json\n1 of 1 files would be copied, 23 bytes\n",
        "",
    )
    assert bucket.keys(destination) == []


def test_mistakes_are_one_message_without_a_traceback(run: Run, bucket: Bucket, model: Path) -> None:
    uri = bucket.fresh().uri
    assert run("./nowhere", "--to", uri) == (2, "", "./nowhere: SEA360: no such folder\n")
    assert run(model, "--to", uri, "--revision", "main") == (
        2,
        "",
        f"--revision: SEA108: a revision belongs to a hub id, and {model} is a folder\n",
    )
    code, _, errors = run(model, "--to", "s3://no-such-bucket-here/a/")
    assert (code, errors.splitlines()[0]) == (1, "s3://no-such-bucket-here/a/: SEA361: there is no such bucket")


def test_after_ctrl_c_the_next_run_goes_on(aws: dict[str, str], run: Run, bucket: Bucket, model: Path) -> None:
    destination = bucket.fresh()
    with (model / "model.safetensors").open("wb") as file:
        file.truncate(8 * 32 * MIB)
    process = command(aws, model, "--to", destination.uri)
    arrived = wait_for_a_part(bucket, destination.prefix)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=LONGEST_S)
    assert (process.returncode, errors.splitlines()[-1]) == (130, "interrupted")
    assert arrived
    assert MANIFEST not in bucket.keys(destination)
    code, output, _ = run(model, "--to", destination.uri)
    assert (code, output.splitlines()[0].partition(":")[0]) == (0, "4 files, 0.3 GiB")
    assert MANIFEST in bucket.keys(destination)
    assert "Uploads" not in bucket.s3.list_multipart_uploads(Bucket=bucket.name, Prefix=destination.prefix)


def wait_for_a_part(bucket: Bucket, prefix: str) -> bool:
    deadline = time.monotonic() + LONGEST_S
    while time.monotonic() < deadline:
        for begun in bucket.s3.list_multipart_uploads(Bucket=bucket.name, Prefix=prefix).get("Uploads", ()):
            found = bucket.s3.list_parts(Bucket=bucket.name, Key=begun["Key"], UploadId=begun["UploadId"])
            if found.get("Parts"):
                return True
        time.sleep(0.02)
    return False
