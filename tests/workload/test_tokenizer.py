from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from seatrial.workload import token_count
from seatrial_base.errors import BenchError

if TYPE_CHECKING:
    from pathlib import Path


def test_special_tokens_count_where_they_are_asked_for(tokenizer_file: Path) -> None:
    plain, special = (token_count(tokenizer_file, special_tokens=wanted) for wanted in (False, True))
    assert (plain(""), special("")) == (0, 1)
    assert special("the sea") == plain("the sea") + 1


def test_a_file_that_is_no_tokenizer(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text("{}")
    with pytest.raises(BenchError) as caught:
        token_count(path)
    assert str(caught.value).startswith(f"{path}: SEA509: not a tokenizer.json: ")


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        token_count(tmp_path / "none.json")
    assert str(caught.value) == f"{tmp_path / 'none.json'}: SEA509: can't be read: No such file or directory"


def test_without_the_package_it_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(BenchError) as caught:
        token_count(tmp_path / "tokenizer.json")
    assert str(caught.value) == (
        "SEA603: counting tokens needs a package that is not installed: tokenizers\n"
        "  hint: pip install 'seatrial[local]'"
    )
