"""The command line as a process of its own, in a copy of the repository's specs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:
    import subprocess

    from tests.command_line import CommandLine

REPOSITORY = Path(__file__).parents[2]
SPECS = ("endpoints/falcon-40b.yaml", "endpoints/llama-2-7b-chat.yaml", "endpoints/mixtral-8x7b.yaml")


class Seatrial(Protocol):
    def __call__(
        self, *arguments: str, folder: Path | None = ..., env: dict[str, str] | None = ...
    ) -> subprocess.CompletedProcess[str]: ...


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for folder in ("endpoints", "environments"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return tmp_path


@pytest.fixture
def seatrial(project: Path, command_line: CommandLine) -> Seatrial:
    def run(
        *arguments: str, folder: Path | None = None, env: dict[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        return command_line.run(*arguments, folder=folder or project, variables=env)

    return run


def files(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
