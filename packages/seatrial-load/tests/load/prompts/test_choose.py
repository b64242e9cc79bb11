from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial_base.errors import BenchError
from seatrial_load.documents.request import Workload
from seatrial_load.documents.request_checks import check_trial_request
from seatrial_load.measure.lengths import lengths_of
from seatrial_load.prompts.choose import digest_of, prompts_of
from seatrial_load.prompts.jsonl import JsonlPrompts
from seatrial_load.prompts.synthetic import SyntheticPrompts
from seatrial_load.prompts.trace import TracePrompts

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from seatrial_load.documents.request import TrialRequest

WORKLOAD = Workload(input_tokens=100, output_tokens=64, schema="openai_chat")


@pytest.fixture
def jsonl(tmp_path: Path) -> Path:
    path = tmp_path / "prompts.jsonl"
    path.write_text('{"prompt": "Why is the sea salt?"}\n')
    return path


def test_made_up_prompts_share_what_the_workload_says() -> None:
    workload = replace(WORKLOAD, shared_prefix_tokens=80, prefix_groups=4)
    assert prompts_of(workload, seed="seed", words_per_token=0.8) == SyntheticPrompts(
        seed="seed", lengths=lengths_of(WORKLOAD), words_per_token=0.8, shared_prefix_tokens=80, prefix_groups=4
    )


def test_a_file_of_prompts(jsonl: Path) -> None:
    workload = replace(WORKLOAD, source="jsonl", source_digest=digest_of(jsonl))
    prompts = prompts_of(workload, seed="seed", file=jsonl)
    assert isinstance(prompts, JsonlPrompts)
    assert (prompts.content(0), prompts.output_tokens(0)) == ("Why is the sea salt?", 64)


def test_a_recorded_trace(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("timestamp,input_length,output_length\n0,10,20\n")
    prompts = prompts_of(replace(WORKLOAD, source="trace"), seed="seed", words_per_token=0.5, file=path)
    assert isinstance(prompts, TracePrompts)
    assert (len(prompts.content(0).split()), prompts.output_tokens(0)) == (5, 20)


def test_a_file_is_read_once_while_it_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "trace.csv"
    path.write_text("timestamp,input_length,output_length\n0,10,20\n")
    workload = replace(WORKLOAD, source="trace")
    first, again = (prompts_of(workload, seed=seed, file=path, first=7) for seed in ("one", "two"))
    path.write_text("timestamp,input_length,output_length\n0,10,20\n1,11,21\n")
    later = prompts_of(workload, seed="two", file=path)
    assert isinstance(first, TracePrompts)
    assert isinstance(again, TracePrompts)
    assert isinstance(later, TracePrompts)
    assert first.trace is again.trace
    assert (first.first, len(first.trace), len(later.trace)) == (7, 1, 2)


def test_the_digest_is_the_files_sha_256(jsonl: Path) -> None:
    assert digest_of(jsonl) == hashlib.sha256(jsonl.read_bytes()).hexdigest()


def test_another_file_than_the_trial_was_asked_for_with(jsonl: Path) -> None:
    workload = replace(WORKLOAD, source="jsonl", source_digest="0" * 64)
    with pytest.raises(BenchError) as caught:
        prompts_of(workload, seed="seed", file=jsonl)
    assert str(caught.value) == (
        f"{jsonl}: workload.source_digest: SEA509: its SHA-256 is {digest_of(jsonl)[:16]}…, but the request has "
        f"0000000000000000…"
    )


def test_everything_that_cannot_be_at_once() -> None:
    workload = replace(WORKLOAD, source="trace", shared_prefix_tokens=101, prefix_groups=0)
    with pytest.raises(BenchError) as caught:
        prompts_of(workload, seed="seed")
    assert str(caught.value).split("\n") == [
        "trial request: workload.shared_prefix_tokens: SEA501: 101 is not at least 0 and below the prompt length 100",
        "trial request: workload.prefix_groups: SEA501: 0 is below 1",
        "trial request: workload.shared_prefix_tokens: SEA501: only synthetic prompts can share a prefix, not those "
        "of a trace file",
        "trial request: workload.source: SEA501: no trace file is given",
    ]


def test_a_file_that_is_gone(tmp_path: Path) -> None:
    with pytest.raises(BenchError) as caught:
        prompts_of(replace(WORKLOAD, source="trace"), seed="seed", file=tmp_path / "none.csv")
    assert str(caught.value) == f"{tmp_path / 'none.csv'}: SEA510: can't be read: No such file or directory"


@pytest.mark.parametrize(("shared", "is_possible"), [(0, True), (99, True), (100, False), (101, False)])
def test_request_and_prompts_agree_on_which_prefixes_are_possible(
    shared: int, trial_request: Callable[..., TrialRequest], *, is_possible: bool
) -> None:
    """For 100 of 100 tokens one refused and the other accepted."""
    workload = replace(WORKLOAD, input_tokens=100, shared_prefix_tokens=shared)
    assert is_accepted(lambda: check_trial_request(trial_request(workload=workload))) is is_possible
    assert is_accepted(lambda: prompts_of(workload, seed="seed", words_per_token=0.8)) is is_possible


def is_accepted(asked: Callable[[], object]) -> bool:
    try:
        asked()
    except BenchError:
        return False
    return True
