"""What the comment and the terminal say alike of a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.changes.effect import TITLES
from seatrial.changes.review.figures import COSTS, costs, update_usd_per_hour
from seatrial.units import counted, usd, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Iterable

    from seatrial.changes.review.figures import BeforeAfter
    from seatrial.changes.review.findings import ReviewFinding
    from seatrial.changes.review.review import EndpointReview, Review
    from seatrial.plan.document import CurvePoint, Plan

OF_A_PRODUCT = {
    "new": "Teams can launch it once its stack is deployed.",
    "removed": "Teams can't launch or update it any more. What they have launched stays.",
    "changed": "What teams have launched stays on its version until they update it.",
}
"""What a change of a product means for teams."""
NOTHING = "No endpoint changes."
COST_NAMES = dict(
    zip(COSTS, ("per hour", "per million output tokens", "per million tokens (3 input to 1 output)"), strict=True)
)


def headline(review: Review) -> str:
    """Count what changes."""
    if review.is_empty:
        return (
            f"{NOTHING} {counted(review.compared, 'endpoint and environment', 'endpoints and environments')} compared."
        )
    changed = counted(len(review.endpoints), "change")
    products = f" Products that change: {len(review.products)}." if review.products else ""
    compared = counted(review.compared, "endpoint and environment", "endpoints and environments")
    return f"{changed} in {compared}.{products}"


def parts(review: EndpointReview) -> str:
    """Name what of an endpoint changes."""
    if review.change != "changed":
        return review.change
    found = review.consequences
    named = {
        "spec": review.spec,
        "plan": review.plan,
        "configuration": review.files,
        "resources": found is not None and not found.diff.is_empty,
    }
    return ", ".join(name for name, changes in named.items() if changes) or "findings"


def risk(review: EndpointReview) -> str:
    """Name the effect that users may notice most, or why there is none to name."""
    if review.refused:
        return "refused"
    if review.is_blocked:
        return "can't be published" if review.is_size else "can't be deployed"
    if review.is_size:
        return "teams can launch it" if review.before is None else "what is launched stays"
    if review.consequences is not None:
        return TITLES[review.consequences.risk]
    return "stays deployed until its stack is deleted" if review.after is None else "not compared"


def money(one: BeforeAfter) -> str:
    """Write a price before and after; one where both are equal."""
    before, after = ("–" if value is None else usd(value) for value in (one.before, one.after))
    return before if before == after else f"{before} → {after}"


def load(one: BeforeAfter) -> str:
    """Write a number of requests in flight before and after; one where both are equal."""
    before, after = ("–" if value is None else whole_or_tenths(value) for value in (one.before, one.after))
    return before if before == after else f"{before} → {after}"


def cost_lines(review: EndpointReview) -> list[str]:
    """Write each price of the planned size, and that of the update."""
    lines = [f"{COST_NAMES[one.name]}: {money(one)}" for one in costs(review)]
    during = update_usd_per_hour(review)
    return lines if during is None else [*lines, f"per hour while the update lasts: {usd(during)}"]


def figures_of(point: CurvePoint | None) -> tuple[str, str, str]:
    """Write tokens per second, TTFT and TPOT in milliseconds of a level."""
    if point is None:
        return "–", "–", "–"
    return f"{point.output_tok_s:,.0f}", f"{point.ttft_p95_ms:,.0f}", f"{point.tpot_p95_ms:,.1f}"


def band_line(plan: Plan | None) -> str:
    """Say how far the prediction of a plan may be off."""
    if plan is None:
        return ""
    return f"throughput ± {plan.band.throughput:.0%}, latency ± {plan.band.latency:.0%}"


def findings_count(findings: Iterable[ReviewFinding]) -> str:
    """Count the new findings, errors first; empty for none."""
    new = [one.severity for one in findings if one.is_new]
    named = ((kind, new.count(kind)) for kind in ("error", "warning", "note"))
    return ", ".join(counted(number, kind) for kind, number in named if number)


def not_compared(review: EndpointReview) -> str:
    """Say why the resources of an endpoint are not compared; empty where they are."""
    if review.consequences is not None or review.is_size:
        return ""
    if review.after is None:
        return (
            "The app no longer has the stack. CloudFormation keeps it until `cdk destroy` or a deletion of the stack."
        )
    if review.is_blocked:
        return "The resources can't be compared before the errors are mended."
    return "The base can't be synthesized, so the resources are not compared."
