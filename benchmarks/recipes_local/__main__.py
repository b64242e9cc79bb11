"""Speed, memory and log-probabilities of one random model at F16, Q8_0 and Q4_0: python -m benchmarks.recipes_local.

The engines serve one after the other, in several rounds, so that what else the machine does hits all of them. The model
is random: what it shows is that fewer bits take less memory and move the log-probabilities, not how good a model is.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from benchmarks.recipes_local.engines import QUANTIZATIONS, local_engine
from seatrial.quality.comparison import compare_quality
from seatrial.quality.pairs import pairs_of
from seatrial_load.documents.request import EvaluationPrompt

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial_load.documents.result import EvaluationAnswer

PROMPTS = tuple(
    EvaluationPrompt(id=f"{n}", prompt=f"Say what follows after the number {n}, and why") for n in range(24)
)
MIB = 2**20


@dataclass(slots=True)
class Measured:
    """What was measured of one type of weights."""

    weights_bytes: int = 0
    resident_bytes: list[int] = field(default_factory=list)
    tok_s: list[float] = field(default_factory=list)
    answers: tuple[EvaluationAnswer, ...] = ()


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=48, help="tokens of an answer")
    parser.add_argument("--model", choices=("small", "large"), default="large")
    asked = parser.parse_args()
    found = {kind: Measured() for kind in QUANTIZATIONS}
    for _ in range(asked.rounds):
        for kind, measured in found.items():
            measure(kind, measured, tokens=asked.tokens, model=asked.model)
    print_table(found)
    return 0


def measure(kind: str, into: Measured, *, tokens: int, model: str) -> None:
    """Serve the prompts once."""
    with tempfile.TemporaryDirectory() as folder, local_engine(kind, Path(folder), model) as engine:
        engine.answers(PROMPTS[:1], tokens)  # the first one reads the weights
        began_s = time.perf_counter()
        into.answers = engine.answers(PROMPTS, tokens)
        into.tok_s.append(sum(len(answer.tokens or ()) for answer in into.answers) / (time.perf_counter() - began_s))
        into.weights_bytes = engine.weights_bytes
        into.resident_bytes.append(resident_bytes(engine.process_id))


def resident_bytes(process_id: int) -> int:
    """Return the memory that a process has in RAM."""
    status = Path(f"/proc/{process_id}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024


def print_table(found: Mapping[str, Measured]) -> None:
    """Print medians, and ratios to F16."""
    base = found["F16"]
    print("| weights | file, MiB | resident, MiB | output, tok/s (one request) | log-probability distance from F16 |")
    print("|---|---:|---:|---:|---:|")
    for kind, measured in found.items():
        quality = compare_quality(pairs_of(PROMPTS, base.answers, measured.answers), len(PROMPTS))
        distance = next(each for each in quality.likeness if each.metric == "logprob_distance")
        size, resident, speed = measured.weights_bytes, median(measured.resident_bytes), median(measured.tok_s)
        print(
            f"| {kind} | {size / MIB:.1f} ({size / base.weights_bytes:.2f}) "
            f"| {resident / MIB:.0f} ({resident / median(base.resident_bytes):.2f}) "
            f"| {speed:.0f} ({speed / median(base.tok_s):.2f}; {min(measured.tok_s):.0f} to {max(measured.tok_s):.0f}) "
            f"| {distance.value:.2g} |"
        )


if __name__ == "__main__":
    sys.exit(main())
