"""The transcript of this run: it names no account, differs in nothing from itself, and its answers are those that ship.

`UPDATE_GOLDEN=1 make test PYTEST_ARGS=tests/acceptance` writes what ships.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.transcript.compare import EMBEDDED, differences, profile_text, read_profile
from tests.acceptance.transcript.lines import read_transcript
from tests.acceptance.transcript.profile import profile_of

if TYPE_CHECKING:
    from tests.acceptance.target import Target
    from tests.acceptance.transcript.profile import Profile

pytestmark = pytest.mark.acceptance


@pytest.fixture(scope="module")
def recorded(target: Target) -> Profile:
    return profile_of(read_transcript(target.recorder.file))


def test_it_names_no_account(target: Target) -> None:
    account = target.client("sts").get_caller_identity()["Account"]
    text = target.recorder.file.read_text(encoding="utf-8")
    assert [found[0] for found in re.finditer(rf".{{0,60}}(?<![0-9]){account}(?![0-9])", text)] == []


def test_it_differs_in_nothing_from_itself(recorded: Profile) -> None:
    assert list(differences(recorded, recorded)) == []


def test_what_ships_has_the_answers_of_this_embedded_aws(target: Target, recorded: Profile) -> None:
    if not target.is_embedded:
        pytest.skip("an account is compared by python -m tests.acceptance.transcript.compare")
    if "UPDATE_GOLDEN" in os.environ:
        EMBEDDED.write_text(profile_text(recorded), encoding="utf-8")
    told = differences(recorded, read_profile(EMBEDDED))
    assert [f"{each}" for each in told if each.rule == "SEA626"] == []
