"""The fit of speculative decoding: two numbers for all rows, and what the catalog ships is what was fitted."""

from __future__ import annotations

import json
import math
from statistics import median

from benchmarks.planner_accuracy.fit_speculation import CATALOG, METHOD, Fitted, error, fit, fitted_into, rows_of

CATALOGED = json.loads(CATALOG.read_text(encoding="utf-8"))


def shipped() -> Fitted:
    rate = next(row["acceptance_rate"] for row in CATALOGED["rows"] if row["provenance"] == "fitted")
    return Fitted(rate, float(CATALOGED["times"]["draft_step_s"]))


def test_what_is_fitted_predicts_the_rows_that_speculate() -> None:
    rows = rows_of(METHOD)
    before = median(abs(math.expm1(error(row, None))) for row in rows)
    after = median(abs(math.expm1(error(row, shipped()))) for row in rows)

    assert len(rows) == 38
    assert before > 0.35
    assert after < 0.08


def test_a_fit_of_few_rows_finds_the_rate_that_they_were_measured_at() -> None:
    rows = [row for row in rows_of(METHOD) if row.use_case == "long_context"]
    found = fit(rows)

    assert 0.5 < found.acceptance_rate < 0.62
    assert 1e-3 < found.step_s < 2.5e-3


def test_the_catalog_takes_what_was_fitted_and_nothing_else() -> None:
    written = json.loads(fitted_into(CATALOG.read_text(encoding="utf-8"), Fitted(0.5, 0.001)))

    rates = {(row["provenance"], row["model"]): row["acceptance_rate"] for row in written["rows"][:6]}
    assert rates == {
        ("fitted", "Qwen/Qwen3-32B"): 0.5,
        ("published", "meta-llama/Llama-3.1-8B"): 0.743,
        ("published", "openai/gpt-oss-120b"): 0.649,
        ("published", "openai/gpt-oss-20b"): 0.629,
        ("published", "MiniMaxAI/MiniMax-M3"): 0.76,
        ("assumed", None): 0.5,
    }
    assert written["times"]["draft_step_s"] == "0.001"
    assert json.loads(fitted_into(CATALOG.read_text(encoding="utf-8"), shipped())) == CATALOGED
