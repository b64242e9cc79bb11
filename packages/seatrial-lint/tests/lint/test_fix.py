"""`--fix` changes the key or value that has a newer spelling, and not a byte beside it."""

from __future__ import annotations

from threading import Thread
from typing import TYPE_CHECKING

import pytest

from seatrial_base.files import changing
from seatrial_lint.lint.lint import Given, fixed_text, lint_sources, mended_diff, write_fixed
from seatrial_lint.lint.read import read_content, read_file
from seatrial_lint.lint.source import ConfigSource

if TYPE_CHECKING:
    from pathlib import Path


def mended(text: str, name: str, **given: str) -> str:
    (source,) = read_content(text.encode(), name)
    assert isinstance(source, ConfigSource)
    return fixed_text(source, lint_sources([source], Given(**given)).findings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("serving.properties", "# kept\r\noption.dtype = bfloat16\r\n", "# kept\r\noption.dtype = bf16\r\n"),
        ("serving.properties", "option.max_num_seqs=8", "option.max_rolling_batch_size=8"),
        ("serving.properties", "option.Max_Model_Len : 8\n", "option.max_model_len : 8\n"),
        ("serving.properties", "option.seed=1\n\noption.seed=1\n", "\noption.seed=1\n"),
        (".env", "export DTYPE='bf16' \nMAX_TOTAL_TOKENS=9\n", "export DTYPE=bfloat16 \nMAX_TOTAL_TOKENS=9\n"),
        ("e.json", '{"MAX_INPUT_LENGTH" : "8"}', '{"MAX_INPUT_TOKENS" : "8"}'),
        ("e.json", '{"OPTION_DTYPE":"float16"}\n', '{"OPTION_DTYPE":"fp16"}\n'),
    ],
)
def test_spellings_and_repetitions_are_mended_in_place(name: str, before: str, after: str) -> None:
    given = {} if name == ".env" or "MAX_INPUT" in before else {"engine": "lmi", "version": "lmi27"}
    assert mended(before, name, **given) == after
    assert mended(after, name, **given) == after


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("serving.properties", "option.seed=1\noption.seed=2\n"),  # which one is meant?
        ("serving.properties", "option.max_num_seqs=8\noption.max_rolling_batch_size=9\n"),
        ("serving.properties", "option.max_rolling_batch=8\n"),  # only a guess is at hand
        ("serving.properties", "tensor_parallel_degree=8\n"),
        ("serving.properties", "option.output_formatter=sse\n"),
        (".env", "MAX_INPUT_LENGTH=8\nMAX_INPUT_TOKENS=9\n"),
        ("e.json", '{"OPTION_SEED": "1", "OPTION_SEED": "1"}'),
    ],
)
def test_what_would_change_the_meaning_is_left(name: str, text: str) -> None:
    assert mended(text, name) == text


def test_the_file_keeps_its_mode_and_encoding(tmp_path: Path) -> None:
    file = tmp_path / "serving.properties"
    file.write_bytes("# caf\xe9\noption.dtype=bfloat16\n".encode("latin-1"))
    file.chmod(0o640)
    (source,) = read_file(file)
    assert isinstance(source, ConfigSource)
    write_fixed(source, fixed_text(source, lint_sources([source]).findings))
    assert file.read_bytes() == b"# caf\xe9\noption.dtype=bf16\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert [one.name for one in tmp_path.iterdir()] == ["serving.properties"]


def test_a_file_that_was_changed_since_it_was_read_is_left_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "serving.properties"
    file.write_text("option.dtype=bfloat16\n")
    (source,) = read_file(file)
    assert isinstance(source, ConfigSource)
    file.write_text("option.dtype=fp32\n")
    with pytest.raises(OSError, match="it has changed since it was read"):
        write_fixed(source, "option.dtype=bf16\n")
    assert file.read_text() == "option.dtype=fp32\n"


def test_a_file_is_not_mended_while_somebody_else_changes_one_of_its_folder(tmp_path: Path) -> None:
    file = tmp_path / "serving.properties"
    file.write_text("option.dtype=bfloat16\n")
    (source,) = read_file(file)
    assert isinstance(source, ConfigSource)
    with changing(file):
        waiting = Thread(target=write_fixed, args=(source, "option.dtype=bf16\n"))
        waiting.start()
        waiting.join(0.05)
        assert file.read_text() == "option.dtype=bfloat16\n"
    waiting.join()
    assert file.read_text() == "option.dtype=bf16\n"


def test_the_difference_hides_secrets() -> None:
    (source,) = read_content(b"DTYPE=bf16\nHF_TOKEN=hf_abcdefghijklmnopqrstuvwxyz\nSM_NUM_GPUS=1", "a.env")
    assert isinstance(source, ConfigSource)
    assert mended_diff(source, fixed_text(source, lint_sources([source]).findings)) == (
        "--- a.env\n+++ a.env\n@@ -1,3 +1,3 @@\n-DTYPE=bf16\n+DTYPE=bfloat16\n HF_TOKEN=(hidden)\n SM_NUM_GPUS=1\n"
        "\\ No newline at end of file\n"
    )


def test_a_common_word_as_a_secret_changes_no_other_line() -> None:
    (source,) = read_content(
        b"option.model_id=a/b\noption.dtype=bfloat16\noption.hf_token=model\n", "serving.properties"
    )
    assert isinstance(source, ConfigSource)
    told = mended_diff(source, fixed_text(source, lint_sources([source]).findings))
    assert " option.model_id=a/b\n" in told
    assert " option.hf_token=(hidden)\n" in told
