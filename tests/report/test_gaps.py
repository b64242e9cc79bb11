"""Whatever a trial could not measure, its report is written, and says what is missing instead of a number."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial_load.documents.result import TrialResult
from tests.report.reading import Tables

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan

OPTIONAL = (
    "output_tok_s",
    "requests_per_s",
    "goodput_requests_per_s",
    "ttft_ms",
    "tpot_ms",
    "itl_ms",
    "ms_per_token",
    "e2e_latency_ms",
    "input_tokens_mean",
    "output_tokens_mean",
    "total_tok_s",
    "output_tok_s_interval",
    "error_rate_interval",
    "parts_per_token",
    "queue_share",
    "duration_s",
    "client",
    "timeline",
)


LAGGED: Mapping[str, object] = {"reasons": ["read_late"], "because": "the client lagged"}


@st.composite
def gaps(draw: st.DrawFn) -> list[tuple[set[str], Mapping[str, object] | None, bool]]:
    """Draw for each level what it lacks, why it is void, and whether its throughput is nothing at all."""
    lacking = st.sets(st.sampled_from(OPTIONAL))
    level = st.tuples(lacking, st.sampled_from([None, LAGGED]), st.booleans())
    return draw(st.lists(level, max_size=3))


def with_gaps(result: TrialResult, drawn: list[tuple[set[str], Mapping[str, object] | None, bool]]) -> TrialResult:
    document = json.loads(result.to_json())
    document["levels"] = [
        {**level, **({"output_tok_s": 0.0} if still else {}), **dict.fromkeys(lacking), "void": void}
        for level, (lacking, void, still) in zip(document["levels"], drawn, strict=False)
    ]
    if all(level["void"] for level in document["levels"]):  # nothing is left that a pass could come from
        document["verdict"]["status"] = "inconclusive"
    return TrialResult.from_json(json.dumps(document))


@settings(deadline=None, max_examples=30)
@given(gaps(), st.booleans(), st.booleans())
def test_every_trial_has_its_report(
    rich: TrialResult,
    plan: Plan,
    drawn: list[tuple[set[str], Mapping[str, object] | None, bool]],
    planned: bool,  # noqa: FBT001 (drawn)
    bare: bool,  # noqa: FBT001 (drawn)
) -> None:
    result = with_gaps(rich, drawn)
    if bare:
        result = replace(result, knees=(), search=(), client=None, overhead=None, comparison=None)
    page = render_html(result, plan if planned else None)
    assert "None" not in {text for rows in Tables(page).by_caption.values() for row in rows for text, _ in row}
    told = re.sub(r"<script>.*?</script>|href=\"data:[^\"]*\"", "", page, flags=re.DOTALL)
    assert "nan" not in told.lower().replace("nano", "")
    assert render_markdown(result, plan if planned else None).endswith(".\n")
