"""Where the files of a probe lie, and that one probe of an endpoint runs at a time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.operations.app import app_root
from seatrial.probe.run import check_tools, keep_probe_result, only_probe, probe_folder, result_path
from seatrial_base.errors import SpecError
from seatrial_load.documents.result import TrialResult
from tests.probe.conftest import result_of

if TYPE_CHECKING:
    from tests.probe.conftest import Locked


def test_the_files_lie_in_the_folder_of_the_app(locked: Locked) -> None:
    home = locked.loaded.path.parent
    assert (app_root(locked.loaded.path), probe_folder(locked.loaded)) == (None, home / ".seatrial/probe/dev-chat")
    (home.parent / "cdk.json").write_text("{}")
    try:
        assert app_root(locked.loaded.path) == home.parent
        assert probe_folder(locked.loaded) == home.parent / ".seatrial/probe/dev-chat"
        assert check_tools(locked.loaded.path) == home.parent
    finally:
        (home.parent / "cdk.json").unlink()


def test_without_an_app_nothing_is_deployed(locked: Locked) -> None:
    with pytest.raises(SpecError) as refused:
        check_tools(locked.loaded.path)
    assert [problem.rule for problem in refused.value.problems] == ["SEA450"]


def test_another_probe_of_the_endpoint_is_kept_out(locked: Locked) -> None:
    folder = probe_folder(locked.loaded)
    with only_probe(folder), pytest.raises(SpecError) as refused, only_probe(folder):
        pass
    assert [problem.rule for problem in refused.value.problems] == ["SEA525"]
    with only_probe(folder):
        pass


def test_a_folder_that_can_not_be_made_is_told(locked: Locked) -> None:
    (locked.loaded.path.parent / ".seatrial").write_text("")
    with pytest.raises(SpecError) as refused, only_probe(probe_folder(locked.loaded)):
        pass
    assert [problem.rule for problem in refused.value.problems] == ["SEA101"]


def test_the_result_is_kept_as_it_is(locked: Locked) -> None:
    (candidate,) = locked.pinned("candidate")
    result = result_of(candidate)
    keep_probe_result(candidate, result)
    assert result_path(candidate).name == "chat-probe-candidate.result.json"
    assert TrialResult.from_json(result_path(candidate).read_text()) == result
