"""One embedded AWS for the stage tests, a small model, and a way to stage it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

import boto3
import pytest
from botocore.config import Config

from seatrial.stage.destination import Destination
from seatrial.stage.source import ModelFiles, read_folder
from seatrial.stage.staging import copy_model, survey
from seatrial_base.units import MIB
from seatrial_laptop import lifecycle
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_s3 import S3Client

    from seatrial.stage.destination import Manifest
    from seatrial.stage.staging import Survey

LARGE_BYTES = 33 * MIB  # two parts


@dataclass
class Bucket:
    """One bucket of the embedded AWS."""

    s3: S3Client
    name: str
    prefixes: int = field(default=0)

    def fresh(self) -> Destination:
        """Return a prefix that nothing lies under."""
        self.prefixes += 1
        return Destination(self.s3, self.name, f"models/{self.prefixes}/")

    def keys(self, destination: Destination) -> list[str]:
        return sorted(destination.names())


class Stage(Protocol):
    def __call__(
        self,
        source: ModelFiles | Path,
        destination: Destination,
        *,
        replace: bool = ...,
        stop: threading.Event | None = ...,
        on_bytes: Callable[[int], None] = ...,
    ) -> tuple[Survey, Manifest]: ...


@pytest.fixture
def stage() -> Stage:
    """Return the way to survey and copy in one go."""

    def run(
        source: ModelFiles | Path,
        destination: Destination,
        *,
        replace: bool = False,
        stop: threading.Event | None = None,
        on_bytes: Callable[[int], None] = lambda _: None,
    ) -> tuple[Survey, Manifest]:
        from_there = source if isinstance(source, ModelFiles) else read_folder(source)
        event = stop or threading.Event()
        found = survey(from_there, destination, event)
        return found, copy_model(from_there, destination, found, replace=replace, stop=event, on_bytes=on_bytes)

    return run


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """Return the folder of a model: two small files, an empty one, and weights of two parts."""
    folder = tmp_path / "tiny-chat"
    (folder / "nested").mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    (folder / "nested" / "vocab.txt").write_text("hello\n")
    (folder / "empty.txt").touch()
    (folder / ".gitattributes").write_text("left out")
    (folder / "model.safetensors").write_bytes(patterned(LARGE_BYTES))
    return folder


def patterned(size_bytes: int, salt: int = 0) -> bytes:
    """Return bytes in which no two MiB are alike."""
    blocks = -(-size_bytes // MIB)
    return b"".join((index + salt).to_bytes(4, "big") * (MIB // 4) for index in range(blocks))[:size_bytes]


@pytest.fixture(scope="session")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Start an embedded AWS and return the variables that lead to it."""
    state_dir = tmp_path_factory.mktemp("aws")
    try:
        yield lifecycle.environment(lifecycle.start_embedded_aws(state_dir=state_dir))
    finally:
        lifecycle.stop_embedded_aws(state_dir)


@pytest.fixture(scope="session")
def bucket(aws: dict[str, str]) -> Bucket:
    with environment(aws):
        s3 = boto3.client("s3", config=Config(retries={"total_max_attempts": 1}))
    s3.create_bucket(Bucket="staged-models")
    return Bucket(s3, "staged-models")
