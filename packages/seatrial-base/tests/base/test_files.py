"""A user's files: what is no regular file or too large is refused at once; what is written is whole or not there."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from seatrial_base.files import (
    check_regular,
    follow_links,
    kind_of,
    read_file_bytes,
    read_text,
    replacing,
    whole_file,
    write_folder,
    write_new,
    write_together,
    write_whole,
)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def refusal(path: Path, most_bytes: int = 10) -> str:
    with pytest.raises(OSError) as refused:  # noqa: PT011 (its words are the test)
        read_file_bytes(path, most_bytes=most_bytes)
    return str(refused.value.strerror)


def test_a_file_of_exactly_the_limit_is_read_and_one_byte_more_is_not(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"0123456789")
    assert read_file_bytes(tmp_path / "file", most_bytes=10) == b"0123456789"
    (tmp_path / "file").write_bytes(b"0123456789a")
    assert refusal(tmp_path / "file") == "larger than 9.537e-06 MiB"


def test_what_is_no_regular_file_is_neither_read_nor_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(os.devnull)
    assert refusal(tmp_path / "pipe") == "a pipe, not a regular file"
    assert refusal(tmp_path / "link") == "a device, not a regular file"
    assert refusal(tmp_path) == "Is a directory"
    assert refusal(tmp_path / "none") == "No such file or directory"
    with pytest.raises(OSError, match="a pipe, not a regular file"):
        check_regular(tmp_path / "pipe")


def test_line_ends_of_every_system_are_read_alike(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"a\r\nb\rc\n")
    assert read_text(tmp_path / "file") == "a\nb\nc\n"


def test_a_file_that_is_replaced_keeps_its_mode_and_its_link(tmp_path: Path) -> None:
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("old")
    file.chmod(0o640)
    link.symlink_to(file)
    write_whole(link, "new")
    assert link.is_symlink()
    assert (file.read_text(), file.stat().st_mode & 0o777) == ("new", 0o640)
    assert names(tmp_path) == ["file", "link"]


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with pytest.raises(ZeroDivisionError), replacing(file) as scratch:
        scratch.write_text(str(1 // 0))
    with pytest.raises(ZeroDivisionError), whole_file(file) as opened:
        opened.write(f"half{1 // 0}")
    assert (names(tmp_path), file.read_text()) == (["file"], "old")


def test_a_reader_sees_the_old_file_until_the_new_one_is_whole(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("old")
    with whole_file(file) as opened:
        opened.write("new")
        opened.flush()
        assert file.read_text() == "old"
    assert file.read_text() == "new"


def test_a_device_is_written_to_and_never_replaced(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(os.devnull)
    with whole_file(link) as opened:
        opened.write("gone")
    assert (link.is_symlink(), link.resolve().is_char_device()) == (True, True)


def test_a_new_file_never_takes_the_place_of_one(tmp_path: Path) -> None:
    write_new(tmp_path / "file", "first")
    with pytest.raises(FileExistsError):
        write_new(tmp_path / "file", "second")
    assert ((tmp_path / "file").read_text(), names(tmp_path)) == ("first", ["file"])


def test_a_new_file_that_can_not_be_written_whole_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UnicodeEncodeError):
        write_new(tmp_path / "file", "half \ud800")
    assert names(tmp_path) == []


def test_files_written_together_are_all_changed_or_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with pytest.raises(OSError, match="b"):
        write_together(tmp_path, {"a": "new", "b": "new"})
    assert ((tmp_path / "a").read_text(), names(tmp_path)) == ("old", ["a", "b"])
    write_together(tmp_path, {"a": "new", "c": "new"})
    assert ((tmp_path / "a").read_text(), names(tmp_path)) == ("new", ["a", "b", "c"])
    with pytest.raises(OSError, match="b"):
        write_together(tmp_path, {"c": None, "d/c": "new", "b": "new"})
    assert ((tmp_path / "c").read_text(), names(tmp_path / "d")) == ("new", [])
    write_together(tmp_path, {"c": None, "d/c": "below"})
    assert ((tmp_path / "d" / "c").read_text(), names(tmp_path)) == ("below", ["a", "b", "d"])


def test_a_folder_that_holds_something_is_left_alone(tmp_path: Path) -> None:
    write_folder(tmp_path / "new", {"a": "1"})
    with pytest.raises(OSError, match="not empty"):
        write_folder(tmp_path / "new", {"a": "2"})
    assert ((tmp_path / "new" / "a").read_text(), names(tmp_path)) == ("1", ["new"])


@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_mode_that_the_umask_leaves(umask: int, mode: int, tmp_path: Path) -> None:
    before = os.umask(umask)
    try:
        write_whole(tmp_path / "new", "text")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == mode


def test_a_link_to_itself_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "lock").symlink_to("lock")
    with pytest.raises(OSError, match="symbolic links") as error:
        write_whole(tmp_path / "lock", "text")
    assert (error.value.errno, error.value.filename) == (errno.ELOOP, str(tmp_path / "lock"))
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


@pytest.mark.parametrize("name", ["loop", "loop/below", "loop/below/it", "other", "to-a-loop", "folder/up/loop"])
def test_a_link_to_itself_leads_nowhere(name: str, tmp_path: Path) -> None:
    for link, target in (("loop", "loop"), ("other", "one"), ("one", "other"), ("to-a-loop", "loop/below")):
        (tmp_path / link).symlink_to(target)
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "up").symlink_to("..")
    with pytest.raises(OSError, match="symbolic links") as error:
        follow_links(tmp_path / name)
    assert error.value.errno == errno.ELOOP
    assert kind_of(tmp_path / name) is None


def test_links_are_followed_to_what_is_not_there_yet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    monkeypatch.chdir(tmp_path)
    assert follow_links(Path("link/../link/none/./new")) == tmp_path / "folder" / "none" / "new"
    assert follow_links(tmp_path / ("x" * 300)) == tmp_path / ("x" * 300)


def test_what_a_path_leads_to(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(".")
    os.mkfifo(tmp_path / "pipe")
    names = ("file", "link", "link/file", "pipe", "none", "file/below", "zero\0")
    assert [kind_of(tmp_path / name) for name in names] == ["file", "folder", "file", "other", None, None, None]


def test_what_cannot_be_looked_at_is_not_taken_for_missing(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="File name too long"):
        kind_of(tmp_path / ("x" * 300))
