from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from seatrial.errors import RenderError
from seatrial.packaging import tar_gz_bytes
from seatrial.serving.artifact import code_files

if TYPE_CHECKING:
    from pathlib import Path

    from tests.serving.conftest import Loaded

CODE = "serving: {code: code}"


@pytest.fixture
def code(tmp_path: Path) -> Path:
    folder = tmp_path / "endpoints" / "code"
    (folder / "__pycache__").mkdir(parents=True)
    (folder / "lib").mkdir()
    (folder / "requirements.txt").write_text("einops\n")
    (folder / "model.py").write_text("def handle(inputs): ...\n")
    (folder / "lib" / "words.py").write_text("")
    (folder / "__pycache__" / "model.pyc").write_bytes(b"\xff")
    (folder / ".secret").write_text("left out")
    return folder


def packed(loaded: Loaded) -> bytes:
    return tar_gz_bytes({name: text.encode() for name, text in code_files(loaded(CODE)).items()})


def test_no_folder_no_files(loaded: Loaded) -> None:
    assert code_files(loaded()) == {}


def test_the_files_of_the_folder_sorted_without_caches_and_hidden_ones(loaded: Loaded, code: Path) -> None:
    assert list(code_files(loaded(CODE))) == ["lib/words.py", "model.py", "requirements.txt"]
    assert code_files(loaded(CODE))["requirements.txt"] == "einops\n"


def test_times_and_modes_do_not_change_the_archive_but_content_does(loaded: Loaded, code: Path) -> None:
    before = packed(loaded)
    os.utime(code / "model.py", (1, 1))
    (code / "model.py").chmod(0o600)
    assert packed(loaded) == before
    (code / "model.py").write_text("def handle(inputs): return inputs\n")
    assert packed(loaded) != before


def test_everything_that_can_not_be_packaged_is_listed(loaded: Loaded, code: Path, tmp_path: Path) -> None:
    (tmp_path / "outside.py").write_text("")
    (code / "away.py").symlink_to(tmp_path / "outside.py")
    (code / "weights.bin").write_bytes(b"\xff\xfe\x00")
    (code / "serving.properties").write_text("engine=Python\n")
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE))
    assert [(problem.field, problem.rule, problem.message) for problem in error.value.problems] == [
        ("serving.code", "SEA368", "away.py leads out of the folder"),
        ("serving.code", "SEA368", "serving.properties is written from the plan"),
        ("serving.code", "SEA368", "weights.bin is no UTF-8 text"),
    ]


def test_a_large_folder_is_pointed_to_staging(loaded: Loaded, code: Path) -> None:
    (code / "table.txt").write_text("a" * (10 * 2**20))
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE))
    assert [problem.message for problem in error.value.problems] == ["the folder's 10,485,791 bytes exceed 10,485,760"]
    assert error.value.problems[0].hint == "weights don't belong there: stage them (seatrial stage)"


def test_a_missing_folder(loaded: Loaded) -> None:
    with pytest.raises(RenderError, match=r"SEA368: code is no folder"):
        code_files(loaded(CODE))


def test_mounted_weights_leave_no_place_for_code(loaded: Loaded, code: Path) -> None:
    with pytest.raises(RenderError) as error:
        code_files(loaded(CODE, model="s3_uri: s3://bucket/model/"))
    assert [str(problem).partition(": serving")[2] for problem in error.value.problems] == [
        ".code: SEA368: the code and the mounted weights both claim /opt/ml/model\n"
        "  hint: put the code beside the weights, and stage both"
    ]
