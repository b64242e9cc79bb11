from __future__ import annotations

import json

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.aws.deployment_check import not_proven
from seatrial_load.documents.progress import TrialProgress

PROGRESS = TrialProgress(started_at="2026-11-21T01:02:03+00:00", elapsed_s=1.0, sent=10, live=not_proven())


def written(**more: object) -> str:
    return json.dumps({**json.loads(PROGRESS.to_json()), **more})


def test_a_progress_of_an_earlier_release_is_read() -> None:
    """The function of the trials is updated while a trial waits; who watches it may be newer than that function."""
    assert TrialProgress.from_json(written(measured_from_s=1.0, measured_to_s=None)) == PROGRESS


def test_an_unknown_key_is_named() -> None:
    with pytest.raises(BenchError, match=r"measured_by.*unknown key"):
        TrialProgress.from_json(written(measured_by="nobody"))
