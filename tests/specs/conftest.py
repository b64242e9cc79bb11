from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    from pathlib import Path

ENDPOINT = """\
name: chat
model:
  hub_id: org/model
workload:
  input_tokens: 256
  output_tokens: 128
  concurrency: 8
"""


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


@pytest.fixture
def environments(tmp_path: Path) -> Path:
    folder = tmp_path / "environments"
    folder.mkdir()
    for name in ("dev", "prod"):
        (folder / f"{name}.yaml").write_text(f"name: {name}\nregion: us-east-1\n")
    return folder


@pytest.fixture
def write(tmp_path: Path) -> Write:
    folder = tmp_path / "endpoints"
    folder.mkdir()

    def write_file(text: str, name: str = "chat.yaml") -> Path:
        (folder / name).write_text(textwrap.dedent(text))
        return folder / name

    return write_file


@pytest.fixture
def endpoint_text() -> str:
    return ENDPOINT
