from __future__ import annotations

import base64
import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.stage.source import MOST_PARTS, base64_of, checksums_of, hex_of, part_bytes
from seatrial_base.units import GIB, MIB

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("size_bytes", "part"),
    [
        (0, 32 * MIB),
        (312 * GIB, 32 * MIB),
        (10_000 * 32 * MIB, 32 * MIB),
        (10_000 * 32 * MIB + 1, 33 * MIB),
        (5 * 1024 * GIB, 525 * MIB),  # the largest object that S3 held in 2024
    ],
)
def test_a_part_is_32_mib_until_10_000_of_them_do_not_suffice(size_bytes: int, part: int) -> None:
    assert part_bytes(size_bytes) == part


@given(st.integers(0, 50 * 1024 * GIB))
def test_a_file_never_has_too_many_parts(size_bytes: int) -> None:
    assert -(-size_bytes // part_bytes(size_bytes)) <= MOST_PARTS


def test_a_small_file_has_the_checksum_of_its_content(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hello\n")
    found = checksums_of(tmp_path / "a", 6)
    assert found.sha256 == hashlib.sha256(b"hello\n").hexdigest()
    assert found.git_sha1 == "ce013625030ba8dba906f756967f9e9ca394464a"  # git hash-object
    assert hex_of(found.s3) == found.sha256
    assert base64_of(found.sha256) == found.s3


def test_a_large_file_has_a_composite_checksum(tmp_path: Path) -> None:
    whole = b"a" * (32 * MIB) + b"b"
    (tmp_path / "a").write_bytes(whole)
    found = checksums_of(tmp_path / "a", len(whole))
    digests = hashlib.sha256(b"a" * (32 * MIB)).digest() + hashlib.sha256(b"b").digest()
    assert found.s3 == f"{base64.b64encode(hashlib.sha256(digests).digest()).decode()}-2"
    assert found.sha256 == hashlib.sha256(whole).hexdigest()


def test_a_told_digest_agrees_or_not(tmp_path: Path) -> None:
    (tmp_path / "a").touch()
    found = checksums_of(tmp_path / "a", 0)
    agreeing = (None, f"sha256:{found.sha256}", f"git-sha1:{found.git_sha1}")
    assert all(found.agrees(told) for told in agreeing)
    assert not any(found.agrees(told) for told in ("", f"sha256:{'0' * 64}", "md5:1"))
