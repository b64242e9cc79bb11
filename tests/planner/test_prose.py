"""The sentences of the plans of this repository, in one file; UPDATE_GOLDEN=1 writes it anew. Numbers are `#`."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.planner.comparisons import explain
from seatrial.planner.planner import make_plan
from seatrial.report.terminal.plan import decision_rows
from seatrial.specs.load import load_spec

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan

GOLDEN = Path(__file__).parent / "golden" / "plans.txt"
ROOT = Path(__file__).parents[2]
ENDPOINTS = ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b")


def without_numbers(text: str) -> str:
    return re.sub(r"(?<![\w.])\d(?:[\d,]*\d)?(?:\.\d+)?", "#", text)


def sentences(plan: Plan) -> Iterator[str]:
    yield f"# {plan.endpoint} in {plan.environment}"
    yield from (f"{name}: {without_numbers(because)}" for name, _, because in decision_rows(plan))
    yield from dict.fromkeys(f"rejected: {without_numbers(one.because)}" for one in plan.rejected)
    yield from (f"warning: {without_numbers(warning)}" for warning in plan.warnings)


def test_the_sentences_of_the_plans_are_the_golden_file() -> None:
    text = ""
    for name in ENDPOINTS:
        loaded = load_spec(ROOT / "endpoints" / f"{name}.yaml", "prod", environments=ROOT / "environments")
        text += "".join(f"{line}\n" for line in sentences(make_plan(loaded)))
        why = dict.fromkeys(without_numbers(verdict.because) for verdict in explain(loaded, "ml.p5.48xlarge"))
        text += "".join(f"why: {because}\n" for because in why)
    if os.environ.get("UPDATE_GOLDEN"):
        GOLDEN.parent.mkdir(exist_ok=True)
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")
