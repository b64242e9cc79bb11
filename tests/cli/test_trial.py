"""`seatrial trial watch`: what it tells of a trial, and how it ends."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
import typer

from seatrial.account.trials import LiveTrial
from seatrial.cli.trial import TrialLines
from seatrial_base.errors import BenchError
from tests.constructs.conftest import passing_result

if TYPE_CHECKING:
    from tests.cli.conftest import Seatrial

RESULT = passing_result()
LEVELS = RESULT.levels
MOMENTS = (
    LiveTrial(),
    LiveTrial(request_id="1", is_due=True, left_s=590.0, loading=8),
    LiveTrial(request_id="1", is_due=True, left_s=300.0, levels=LEVELS[:1], loading=16),
    LiveTrial(request_id="1", is_due=True, left_s=0.0, levels=LEVELS, result=RESULT),
)


def told_of(*moments: LiveTrial) -> TrialLines:
    told = TrialLines(typer.echo)
    for seen in moments:
        told.write(seen, "dev-chat")
    return told


def test_each_level_is_told_once_with_what_is_left(capsys: pytest.CaptureFixture[str]) -> None:
    told_of(*MOMENTS)
    lines = capsys.readouterr().out.splitlines()
    assert lines[:3] == [
        "waiting for the deployment of dev-chat to start a trial",
        "the trial of dev-chat",
        "loading concurrency 8 per copy (9:50 min left)",
    ]
    assert lines[3].startswith("concurrency 8: 250")
    assert "TTFT p95" in lines[3]
    assert "TPOT p95" in lines[3]
    assert lines[3].endswith("(5:00 min left)")
    assert lines[4] == "loading concurrency 16 per copy (5:00 min left)"
    assert lines[5].startswith("concurrency 16: ")
    assert len(lines) == 6


def test_a_passed_trial_ends_well_with_its_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    TrialLines.conclude(MOMENTS[-1], "dev-chat")
    assert capsys.readouterr().out.splitlines()[-2] == "verdict: pass: objective met"


@pytest.mark.parametrize("status", ["fail", "inconclusive"])
def test_any_other_verdict_ends_with_1(status: str) -> None:
    verdict = replace(RESULT.verdict, status=status, because="it is too slow")  # type: ignore[arg-type]  # a column
    seen = replace(MOMENTS[-1], result=replace(RESULT, verdict=verdict))
    with pytest.raises(typer.Exit) as ended:
        TrialLines.conclude(seen, "dev-chat")
    assert ended.value.exit_code == 1


def test_a_trial_that_could_not_be_made_says_why() -> None:
    seen = LiveTrial(request_id="1", is_due=True, error="SEA504: unreachable")
    with pytest.raises(BenchError, match="dev-chat: SEA507: SEA504: unreachable"):
        TrialLines.conclude(seen, "dev-chat")


def test_a_deployment_that_changed_nothing_has_no_trial_to_watch() -> None:
    with pytest.raises(BenchError, match=r"SEA521: the last deployment needed no trial: .* or was rolled back"):
        TrialLines.conclude(LiveTrial(request_id="1"), "dev-chat")


def test_an_unknown_environment_is_told_in_one_message(seatrial: Seatrial) -> None:
    done = seatrial("trial", "watch", "llama-2-7b-chat", "-e", "qa")
    assert done.returncode == 2
    assert done.stderr.startswith("environments/qa.yaml: SEA109: there is no environment qa")


@pytest.mark.parametrize("command", [("trial", "watch"), ("token",)])
def test_without_credentials_it_says_so(seatrial: Seatrial, command: tuple[str, ...]) -> None:
    nothing = {
        "AWS_ACCESS_KEY_ID": "",
        "AWS_SECRET_ACCESS_KEY": "",
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_SHARED_CREDENTIALS_FILE": "/dev/null",
        "AWS_CONFIG_FILE": "/dev/null",
    }
    done = seatrial(*command, "endpoints/llama-2-7b-chat.yaml", "-e", "dev", env=nothing)
    assert done.returncode == 1
    assert "SEA503" in done.stderr
    assert "Traceback" not in done.stderr
