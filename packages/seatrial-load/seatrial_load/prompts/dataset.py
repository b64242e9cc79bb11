"""The lengths of a file of requests: JSON lines or CSV, with the tokens of each prompt and answer.

    {"input_tokens": 812, "output_tokens": 120}
    {"prompt": "Why is the sea salt?", "input_tokens": 6, "output_tokens": 128, "timestamp": 1500}
    {"timestamp": 0, "input_length": 812, "output_length": 120, "hash_ids": [0, 1]}

The lengths alone are read: what users wrote stays where it is. Of a large file a sample is taken, whose lengths are as
those of the file: requests in order of their tokens, evenly spaced.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from seatrial_load.prompts.line_problems import LineProblems, why_not_json
from seatrial_load.prompts.trace_rows import RULE, csv_rows, whole_count

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from typing import TextIO


MOST_PAIRS: Final = 512
"""Of a sample: they are part of a trial's request, in some 6 KB."""
SPELLINGS: Final = (("input_tokens", "output_tokens"), ("input_length", "output_length"))


def read_lengths(path: Path) -> tuple[tuple[int, int], ...]:
    """Read prompt and answer of every request, in tokens; of more than 512, a sample. Failed requests are left out.

    Args:
        path: A name that ends in `.csv` is CSV, any other JSON lines.

    Raises:
        BenchError: SEA510, with every bad line.
    """
    problems = LineProblems(path.as_posix(), RULE)
    pairs: list[tuple[int, int]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = _csv_pairs(file, problems) if path.suffix.lower() == ".csv" else _json_pairs(file, problems)
            pairs += (pair for pair in rows if min(pair) > 0)
    except OSError as unread:
        problems.note(0, f"can't be read: {unread.strerror}")
    except UnicodeDecodeError as binary:
        problems.note(0, f"not UTF-8: {binary.reason}")
    else:
        if not pairs and not problems:
            problems.note(0, "no request has a prompt and an answer")
    problems.raise_if_any()
    return sampled(pairs)


def sampled(pairs: Sequence[tuple[int, int]], most: int = MOST_PAIRS) -> tuple[tuple[int, int], ...]:
    """Return at most so many requests, which are as long as all of them: evenly spaced in order of their tokens."""
    if len(pairs) <= most:
        return tuple(pairs)
    ordered = sorted(pairs, key=lambda pair: (sum(pair), pair))
    return tuple(ordered[(2 * place + 1) * len(ordered) // (2 * most)] for place in range(most))


def _csv_pairs(file: TextIO, problems: LineProblems) -> Iterator[tuple[int, int]]:
    return ((row.tokens_in, row.tokens_out) for row in csv_rows(file, problems))


def _json_pairs(file: TextIO, problems: LineProblems) -> Iterator[tuple[int, int]]:
    for number, line in enumerate(file, start=1):
        if not line.strip():
            continue
        try:
            document: object = json.loads(line)
        except (ValueError, RecursionError) as malformed:
            problems.note(number, why_not_json(malformed))
            continue
        if isinstance(document, dict):
            yield from _pair_of(document, number, problems)
        else:
            problems.note(number, "not a JSON object")


def _pair_of(document: dict[str, object], line: int, problems: LineProblems) -> Iterator[tuple[int, int]]:
    names = next((names for names in SPELLINGS if any(name in document for name in names)), SPELLINGS[0])
    counts = [whole_count(document.get(name)) for name in names]
    prompt, answer = counts
    if prompt is not None and answer is not None:
        yield prompt, answer
        return
    for name, count in zip(names, counts, strict=True):
        if count is None:
            value = document.get(name)
            told = "missing" if value is None else f"{json.dumps(value)[:60]} is not a whole number from 0"
            problems.note(
                line, told, field=name, hint=f"give {names[0]} and {names[1]}, counted by the model's tokenizer"
            )
