from __future__ import annotations

import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest

from seatrial.packaging import tar_gz_bytes, zip_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

FILES = {"b.txt": b"two", "a/a.txt": b"one"}


@pytest.mark.parametrize("pack", [zip_bytes, tar_gz_bytes])
def test_the_same_files_give_the_same_bytes_in_any_order(pack: Callable[[Mapping[str, bytes]], bytes]) -> None:
    assert pack(FILES) == pack(dict(reversed(FILES.items())))


def test_a_zip_holds_the_files_readable_by_everyone() -> None:
    with zipfile.ZipFile(io.BytesIO(zip_bytes(FILES))) as archive:
        assert archive.namelist() == ["a/a.txt", "b.txt"]
        assert archive.read("b.txt") == b"two"
        assert {entry.external_attr >> 16 & 0o777 for entry in archive.infolist()} == {0o644}


def test_a_tar_holds_the_files_without_times_and_owners() -> None:
    with tarfile.open(fileobj=io.BytesIO(tar_gz_bytes(FILES)), mode="r:gz") as archive:
        assert archive.getnames() == ["a/a.txt", "b.txt"]
        assert {(entry.mtime, entry.uid, entry.mode) for entry in archive} == {(0, 0, 0o644)}
