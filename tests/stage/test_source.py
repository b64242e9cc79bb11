from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from seatrial.stage.destination import split_uri
from seatrial.stage.source import ModelFiles, SourceFile, held_twice, read_folder, select
from seatrial_base.errors import SpecError, StageError

NAMES = ("README.md", "config.json", "model-1.safetensors", "original/consolidated.pth", "pytorch_model.bin")


def source(*names: str) -> ModelFiles:
    return ModelFiles(
        "org/model", None, tuple(SourceFile(name, 1, None, lambda: nullcontext(Path())) for name in names)
    )


@pytest.mark.parametrize(
    ("include", "exclude", "kept"),
    [
        ((), (), NAMES),
        (("*.safetensors", "*.json"), (), ("config.json", "model-1.safetensors")),
        ((), ("original/*", "*.bin"), ("README.md", "config.json", "model-1.safetensors")),
        (("*.md", "*.json"), ("README*",), ("config.json",)),
    ],
)
def test_patterns_choose_the_files(include: tuple[str, ...], exclude: tuple[str, ...], kept: tuple[str, ...]) -> None:
    assert tuple(file.name for file in select(source(*NAMES), include=include, exclude=exclude).files) == kept


def test_patterns_that_leave_nothing_are_refused() -> None:
    with pytest.raises(StageError) as error:
        select(source(*NAMES), include=["*.gguf"], exclude=[])
    assert str(error.value) == (
        "org/model: SEA360: --include and --exclude leave none of the 5 files\n  hint: widen --include or narrow "
        "--exclude"
    )


def test_weights_that_lie_there_twice_are_told() -> None:
    assert held_twice(source(*NAMES)) == ("*.bin", "*.pth")
    assert held_twice(source("pytorch_model.bin")) == ()


def test_a_folder_is_read_sorted_without_hidden_files_and_through_links(tmp_path: Path) -> None:
    (tmp_path / "blob").write_text("weights")
    folder = tmp_path / "snapshot"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "HEAD").touch()
    (folder / "b.json").touch()
    (folder / "a.safetensors").symlink_to(tmp_path / "blob")
    found = read_folder(folder)
    assert (found.model, [(file.name, file.size_bytes) for file in found.files]) == (
        "snapshot",
        [("a.safetensors", 7), ("b.json", 0)],
    )


def test_a_broken_link_is_named(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "nowhere")
    with pytest.raises(StageError) as error:
        read_folder(tmp_path)
    assert str(error.value) == f"{tmp_path / 'a'}: SEA360: can't be read: No such file or directory"


def test_an_empty_folder_is_no_model(tmp_path: Path) -> None:
    with pytest.raises(StageError, match="SEA360: the folder holds no file"):
        read_folder(tmp_path)


@pytest.mark.parametrize("uri", ["s3://bucket", "s3://bucket/model", "bucket/model/", "s3://B/model/", "s3:///model/"])
def test_a_destination_is_a_prefix_with_its_final_slash(uri: str) -> None:
    with pytest.raises(SpecError) as error:
        split_uri(uri)
    assert str(error.value) == (
        f"--to: SEA361: {uri!r} is not an S3 prefix\n  hint: as in s3://bucket/model/, with the final slash"
    )


def test_a_destination_may_be_a_whole_bucket_or_deep() -> None:
    assert split_uri("s3://bucket/a/b/") == ("bucket", "a/b/")
