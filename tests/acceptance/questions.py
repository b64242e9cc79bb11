"""What only an account can tell: each question with what Seatrial takes for its answer.

The cases record the answers word for word and judge none: `transcript/compare.py` holds those of an account against the
table of behaviours, and `test_transcript.py` those of the embedded AWS against what ships.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base.catalog.rows import read_row

if TYPE_CHECKING:
    from seatrial_base.printer import Json
    from tests.acceptance.target import Target


@dataclass(frozen=True, slots=True)
class Question:
    """A question.

    Attributes:
        name: Its name in transcripts.
        asked: The question.
        assumed: What the embedded AWS answers, and Seatrial is built on; empty where nothing is.
        not_asked_because: Why no case asks it; empty where one does.
    """

    name: str
    asked: str
    assumed: str
    not_asked_because: str


QUESTIONS: Final = tuple(
    read_row(Question, row)
    for row in json.loads(Path(__file__).with_name("questions.json").read_text(encoding="utf-8"))["rows"]
)
_BY_NAME: Final = {question.name: question for question in QUESTIONS}


def record(target: Target, name: str, answer: Json) -> None:
    """Write the answer to a question into the transcript."""
    question = _BY_NAME[name]
    assert not question.not_asked_because, name
    target.recorder.answer(question.name, question.asked, question.assumed, answer)
