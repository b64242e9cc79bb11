"""Answers to an evaluation set over HTTP: in order, with failures as data."""

from __future__ import annotations

from seatrial_load.aws.credentials import Credentials
from seatrial_load.documents.request import EvaluationPrompt, TrialTarget
from seatrial_load.quality.answers import QualityTools, collect_answers

PROMPTS = tuple(EvaluationPrompt(id=f"{n}", prompt=f"prompt {n}") for n in range(7))


def ask(url: str, manner: str, *, stream: bool = False) -> list[tuple[str, str, str]]:
    target = TrialTarget(endpoint_name=manner, inference_component=None, region="eu-west-1", endpoint_url=url)
    tools = QualityTools(credentials=lambda: Credentials("AKIDEXAMPLE", "secret"))
    answers = collect_answers(target, "lmi", PROMPTS, most_tokens=4, stream=stream, within_s=20, tools=tools)
    return [(answer.id, answer.text, answer.failure) for answer in answers]


def test_every_prompt_has_its_answer_in_order(runtime_url: str) -> None:
    assert ask(runtime_url, "whole") == [(f"{n}", "a b", "") for n in range(7)]


def test_a_streamed_answer_is_read_out_of_its_frames(runtime_url: str) -> None:
    assert ask(runtime_url, "stream", stream=True) == [(f"{n}", " ü0 ü1 ü2 ü3", "") for n in range(7)]
    assert all(failure and not text for _, text, failure in ask(runtime_url, "early-close", stream=True))


def test_a_failure_is_kept_with_its_words(runtime_url: str) -> None:
    answers = ask(runtime_url, "model-error")
    assert [(name, text) for name, text, _ in answers] == [(f"{n}", "") for n in range(7)]
    assert all("CUDA out of memory" in failure for _, _, failure in answers)
