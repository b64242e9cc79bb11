from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.packaging import tar_gz_bytes, zip_bytes
from seatrial.report.charts import LIBRARY

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


FOLDERS = st.dictionaries(
    st.text("abcdefghijklmnopqrstuvwxyz0123456789_", min_size=1, max_size=40), st.binary(max_size=200_000), max_size=4
)


@given(FOLDERS)
def test_a_tar_holds_what_was_packed(files: dict[str, bytes]) -> None:
    packed = tar_gz_bytes(files)
    assert packed == tar_gz_bytes(dict(reversed(files.items())))
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(packed))) as archive:
        held = {name: archive.extractfile(name) for name in archive.getnames()}
        assert {name: file.read() for name, file in held.items() if file} == files


def test_a_tar_has_the_same_hash_on_every_machine() -> None:
    """The bytes are told by the formats alone: neither zlib's version nor the umask, time zone or user change them."""
    code = "import hashlib, os; from seatrial.packaging import tar_gz_bytes; os.umask({umask}); "
    code += "print(hashlib.sha256(tar_gz_bytes({files!r})).hexdigest())"
    hashes = set()
    for umask, zone in ((0o077, "UTC"), (0o002, "Asia/Tokyo")):
        command = [sys.executable, "-c", code.format(umask=umask, files=FILES)]
        env = os.environ | {"TZ": zone, "PYTHONHASHSEED": str(umask)}
        hashes.add(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.strip())
    assert hashes == {"ade6b96e5ec82b0124479acb10149f158ad26c248203c10202653bff2e5c4f65"}
    assert hashlib.sha256(tar_gz_bytes(FILES)).hexdigest() in hashes


PYPROJECT = """
[build-system]
requires = ["hatchling"]
build-backend = "hatchling.build"

[project]
name = "seatrial"
version = "0.1.0"
requires-python = ">=3.11"
"""


def test_a_release_is_built_of_a_commit_of_one_version_and_its_bytes_are_told_by_it(tmp_path: Path) -> None:
    (tmp_path / "seatrial").mkdir()
    for name, text in {"pyproject.toml": PYPROJECT, "seatrial/__init__.py": "", ".gitignore": "dist/\n"}.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    uv = Path(sys.executable).with_name("uv")
    script = Path(__file__).parents[1] / "scripts" / "release.sh"

    def run(*command: object, code: int = 0) -> str:
        words = [f"{word}" for word in command]
        environ = os.environ | {"UV": f"{uv}", "TZ": "Asia/Tokyo" if (tmp_path / "dist").exists() else "UTC"}
        done = subprocess.run(words, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return f"{done.stdout}{done.stderr}"

    def commit() -> None:
        run("git", "add", "--all")
        run("git", "-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message", "work")

    run("git", "init", "--quiet")
    run(uv, "lock", "--quiet")
    assert "commit or undo your changes" in run("sh", script, code=1)
    commit()
    assert "the tag is v0.2.0" in run("sh", script, "v0.2.0", code=1)
    sums = run("sh", script, "v0.1.0")
    (tmp_path / "dist" / "old.whl").touch()
    os.utime(tmp_path / "seatrial" / "__init__.py", (0, 0))
    assert run("sh", script) == sums
    names = ["seatrial-0.1.0-py3-none-any.whl", "seatrial-0.1.0.cdx.json", "seatrial-0.1.0.tar.gz"]
    assert [line.split()[1] for line in sums.splitlines()] == names
    bill = json.loads((tmp_path / "dist" / names[1]).read_text(encoding="utf-8"))
    assert (bill["bomFormat"], bill["metadata"]["component"]["name"]) == ("CycloneDX", "seatrial")
    package = tmp_path / "packages" / "seatrial-base" / "pyproject.toml"
    package.parent.mkdir(parents=True)
    package.write_text(PYPROJECT.replace("0.1.0", "0.1.1"), encoding="utf-8")
    commit()
    assert "several versions: 0.1.0 0.1.1" in run("sh", script, code=1)


def test_a_wheel_can_be_built_of_each_sdist() -> None:
    """What is included from outside of a package's folder is not in its sdist."""
    packages = Path(__file__).parents[1] / "packages"
    for file in packages.glob("*/pyproject.toml"):
        targets = tomllib.loads(file.read_text(encoding="utf-8"))["tool"]["hatch"]["build"]["targets"]
        assert [path for target in targets.values() for path in target.get("force-include", {}) if ".." in path] == []
    link = packages / "seatrial-lint" / "seatrial_lint" / "serving_templates"
    assert (link / "lmi" / "serving.properties.j2").is_file()
    assert link.resolve() == packages.parent / "serving_templates"


def test_the_wheel_carries_the_chart_library_though_git_does_not() -> None:
    root = Path(__file__).parent.parent
    build = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert build["artifacts"] == [LIBRARY.relative_to(root).as_posix()]
    assert build["artifacts"][0] in (root / ".gitignore").read_text(encoding="utf-8").splitlines()
