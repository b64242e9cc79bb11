"""A peer that is asked about the measured rows: what it answers, and what queues when its batch does not fit.

Standard library only: a peer's own environment runs this module too.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from functools import cache
from typing import TYPE_CHECKING

from benchmarks.planner_accuracy.questions import (
    ANSWERS,
    MS_PER_S,
    Figures,
    Question,
    derived,
    read_questions,
    write_answers,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    ServeBatch = Callable[[Question, int], Figures | None]
    """TTFT and TPOT of a batch that is served together; `None`: it does not fit. LookupError: the peer can't say."""


def ask(serve: ServeBatch, question: Question) -> tuple[Figures, str]:
    """Return a peer's answer and a note.

    The batch is the concurrency, or the largest that the peer says fits; the rest queues. By Little's law the mean
    latency is concurrency / throughput × output tokens, whether or not a request queued.
    """
    if not math.isfinite(question.concurrency):
        return Figures(), "every request is queued at once: no batch is given"
    try:
        return _closed_loop(serve, question)
    except LookupError as why:
        return Figures(), str(why.args[0])


def write_peer(name: str, serve: ServeBatch) -> None:
    """Ask a peer about every measured row and write `predictions/measured/NAME.csv`."""
    answers = {question: ask(serve, question) for question in read_questions()}
    path = ANSWERS / f"{name}.csv"
    write_answers(path, answers)
    print(f"{path.name}: {sum(figures != Figures() for figures, _ in answers.values())} of {len(answers)} rows")


def _closed_loop(serve: ServeBatch, question: Question) -> tuple[Figures, str]:
    answer = cache(lambda batch: serve(question, batch))
    asked = round(question.concurrency)
    batch = asked if answer(asked) else bisect_left(range(1, asked), x=True, key=lambda size: answer(size) is None)
    found = answer(batch) if batch else None
    if found is None:
        return Figures(), "not one request fits, by this tool's account of memory"
    if batch == asked:
        return derived(question, found), ""
    return _queued(
        question, found, batch
    ), f"a batch of {batch} fits, by this tool's account of memory; the rest queues"


def _queued(question: Question, found: Figures, batch: int) -> Figures:
    """Return what a request sees that waits for its turn: its tokens come no slower, its first one comes later."""
    tokens_after_first_ms = (found.tpot_ms or 0.0) * (question.output_tokens - 1)
    served_ms = (found.ttft_ms or 0.0) + tokens_after_first_ms
    mean_ms = served_ms * question.concurrency / batch
    rate = batch * question.output_tokens / served_ms * MS_PER_S
    return Figures(mean_ms - tokens_after_first_ms, found.tpot_ms, mean_ms, output_tok_s=rate)
