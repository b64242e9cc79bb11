"""The answers of two recipes to one prompt, side by side, and the sheet that hides which recipe wrote which."""

from __future__ import annotations

import csv
import io
import json
import math
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from seatrial_base.text import printable
from seatrial_load.quality.scores import is_exact_match, normalized, token_sums

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial_load.documents.request import EvaluationPrompt
    from seatrial_load.documents.result import EvaluationAnswer

CSV_COLUMNS = ("id", "prompt", "reference", "answer 1", "answer 2", "better (1, 2 or same)")
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:80rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%;table-layout:fixed}"
    "td,th{border:1px solid #bbb;padding:.5rem;vertical-align:top;text-align:left;overflow-wrap:anywhere;"
    "white-space:pre-wrap}th{background:#f2f2f2}"
)


@dataclass(frozen=True, slots=True)
class AnswerPair:
    """One prompt that both recipes answered."""

    prompt: EvaluationPrompt
    a: EvaluationAnswer
    b: EvaluationAnswer

    @property
    def is_identical(self) -> bool:
        """Whether both wrote the same text."""
        return self.a.text == self.b.text

    @property
    def common_tokens(self) -> int | None:
        """Tokens until the first difference: all of the shorter answer's where none differs; None without tokens."""
        if self.a.tokens is None or self.b.tokens is None:
            return None
        pairs = zip(self.a.tokens, self.b.tokens, strict=False)
        return next((place for place, (one, other) in enumerate(pairs) if one != other), self._shorter)

    @property
    def log_probability_distance(self) -> float | None:
        """Mean absolute difference of the log-probabilities of the tokens that both wrote alike, before any differs.

        Both models saw the same text there, so the difference is theirs. None without such a token.
        """
        common, logs_a, logs_b = self.common_tokens, self.a.log_probabilities, self.b.log_probabilities
        if not common or logs_a is None or logs_b is None:
            return None
        return math.fsum(abs(logs_a[place] - logs_b[place]) for place in range(common)) / common

    @property
    def _shorter(self) -> int:
        return min(len(self.a.tokens or ()), len(self.b.tokens or ()))

    def exact_matches(self) -> tuple[float, float] | None:
        """Return 1 for each answer that equals the reference, else 0; None without a reference."""
        reference = self.prompt.reference
        if reference is None:
            return None
        return float(is_exact_match(self.a.text, reference)), float(is_exact_match(self.b.text, reference))

    def log_sums(self) -> tuple[tuple[float, int], tuple[float, int]] | None:
        """Return sum of log-probabilities and number of tokens of each answer; None where one has none."""
        sums = token_sums((self.a, self.b))
        return (sums[0], sums[1]) if len(sums) == len((self.a, self.b)) else None

    @property
    def says_the_same(self) -> bool:
        """Whether both texts are the same once normalized."""
        return normalized(self.a.text) == normalized(self.b.text)


def pairs_of(
    prompts: Sequence[EvaluationPrompt], a: Sequence[EvaluationAnswer], b: Sequence[EvaluationAnswer]
) -> tuple[AnswerPair, ...]:
    """Return the prompts that both recipes answered."""
    every = (AnswerPair(*each) for each in zip(prompts, a, b, strict=True))
    return tuple(pair for pair in every if pair.a.answered and pair.b.answered)


@dataclass(frozen=True, slots=True)
class SheetRow:
    """One prompt with both answers.

    Attributes:
        first_is_a: Whether answer 1 is the first recipe's.
    """

    pair: AnswerPair
    first_is_a: bool

    @property
    def answers(self) -> tuple[str, str]:
        """Answer 1 and answer 2."""
        a, b = self.pair.a.text, self.pair.b.text
        return (a, b) if self.first_is_a else (b, a)


def blind_rows(pairs: Sequence[AnswerPair], seed: str) -> tuple[SheetRow, ...]:
    """Return the rows; the seed decides which answer comes first in each."""
    random = Random(seed)  # noqa: S311 (an order, not a secret)
    return tuple(SheetRow(pair, random.random() < 1 / 2) for pair in pairs)


def sheet_csv(rows: Sequence[SheetRow]) -> str:
    """Write the sheet as CSV; a cell that a spreadsheet would take for a formula begins with a quote."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(CSV_COLUMNS)
    for row in rows:
        prompt = row.pair.prompt
        cells = (prompt.id, prompt.text, prompt.reference or "", *row.answers, "")
        writer.writerow([_cell(cell) for cell in cells])
    return text.getvalue()


def _cell(text: str) -> str:
    # A cell that begins so is a formula for a spreadsheet, and answers are written by strangers.
    plain = _shown(text)
    return f"'{plain}" if plain.startswith(("=", "+", "-", "@", "\t")) else plain


def sheet_html(rows: Sequence[SheetRow], title: str) -> str:
    """Write the sheet as one HTML page that needs nothing else; every answer is shown as text."""
    cells = [(row.pair.prompt.id, row.pair.prompt.text, row.pair.prompt.reference or "", *row.answers) for row in rows]
    body = Markup("\n").join(
        Markup("<tr>{}</tr>").format(Markup("").join(Markup("<td>{}</td>").format(_shown(cell)) for cell in row))
        for row in cells
    )
    heads = Markup("").join(Markup("<th>{}</th>").format(name) for name in CSV_COLUMNS[:-1])
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>\n'
        f"<style>{_STYLE}</style></head>\n<body><h1>{escape(title)}</h1>\n"
        "<p>Which recipe wrote an answer is hidden: the order changes from row to row. key.json tells it.</p>\n"
        f"<table><thead><tr>{heads}</tr></thead><tbody>\n{body}\n</tbody></table></body></html>\n"
    )


def sheet_key(rows: Sequence[SheetRow], a: str, b: str) -> str:
    """Write which recipe wrote answer 1 and answer 2 of each row, as JSON."""
    key = [
        {"id": row.pair.prompt.id, "answer 1": a if row.first_is_a else b, "answer 2": b if row.first_is_a else a}
        for row in rows
    ]
    return json.dumps(key, indent=2, ensure_ascii=False) + "\n"


def _shown(text: str) -> str:
    return printable(text, layout="\n\t")
