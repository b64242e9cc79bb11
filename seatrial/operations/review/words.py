"""What the comment and the terminal say alike of a review."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.checkout import MERGE_BASE
from seatrial.operations.effect import TITLES
from seatrial.operations.review.figures import COSTS, costs, update_usd_per_hour
from seatrial.operations.review.review import more_instances
from seatrial_base.units import counted, usd, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.review.figures import BeforeAfter
    from seatrial.operations.review.review import EndpointReview, QuotaNeed, Review
    from seatrial.operations.review.side import EndpointState
    from seatrial_base.findings import Finding

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


def missing_commits(review: Review, base: str) -> str:
    """Say that the base has commits which the checkout lacks; empty where it has none."""
    if not review.ahead:
        return ""
    return (
        f"{base} has {counted(review.ahead, 'commit')} that this checkout lacks; what they change is told backwards. "
        f"Give {base}{MERGE_BASE} (with three dots) to compare with the merge base."
    )


def review_headline(review: Review) -> str:
    """Count what changes."""
    if review.is_empty:
        return (
            f"{NOTHING} {counted(review.compared, 'endpoint and environment', 'endpoints and environments')} compared."
        )
    changed = counted(len(review.endpoints), "change")
    products = f" Products that change: {len(review.products)}." if review.products else ""
    compared = counted(review.compared, "endpoint and environment", "endpoints and environments")
    return f"{changed} in {compared}.{products}"


def changed_parts(review: EndpointReview) -> str:
    """Name what of an endpoint changes."""
    if review.change != "changed":
        return review.change
    if review.is_moved:
        return f"moved from {_location(review.before)} to {_location(review.after)}"
    found = review.consequences
    named = {
        "spec": review.spec,
        "plan": review.plan,
        "configuration": review.files,
        "resources": found is not None and not found.diff.is_empty,
    }
    return ", ".join(name for name, changes in named.items() if changes) or "findings"


def _location(state: EndpointState | None) -> str:
    environment = None if state is None or state.deployment is None else state.deployment.environment
    return "" if environment is None else " ".join(filter(None, (environment.account, environment.region)))


def summarize_effect(review: EndpointReview) -> str:
    """Name what users may notice, the greatest first, or why there is nothing to name."""
    if review.refused:
        return f"refused: {_rules(one.rule for one in review.refused)}"
    if review.is_blocked:
        rules = _rules(one.rule for one in errors_of(review))
        verb = "published" if review.is_size else "deployed"
        return f"can't be {verb}: {rules}" if rules else "as deployed until it is promoted"
    if review.is_size:
        return "teams can launch it" if review.before is None else "what is launched stays"
    if review.consequences is not None:
        kept = ["the old stack stays deployed until it is deleted"] if review.is_moved else []
        return "; ".join([*(TITLES[kind] for kind in review.consequences.noticed), *kept])
    return "stays deployed until its stack is deleted" if review.after is None else "not compared"


def errors_of(review: EndpointReview) -> tuple[Finding, ...]:
    """Return why the checkout can't be deployed, whether the base could be or not."""
    return tuple(one for one in (*review.findings, *review.known_findings) if one.severity == "error")


def _rules(rules: Iterable[str]) -> str:
    return ", ".join(sorted(set(rules)))


def extra_instances(review: EndpointReview) -> list[str]:
    """Write the instances that the update needs at most beyond those of before."""
    return [f"{number} × {name}" for name, number in more_instances(review).items()]


def price_words(one: BeforeAfter, review: EndpointReview) -> str:
    """Write a price before and after; one where both are equal."""
    return _both(one, review, usd)


def format_concurrency(one: BeforeAfter, review: EndpointReview) -> str:
    """Write a number of requests in flight before and after; one where both are equal."""
    return _both(one, review, whole_or_tenths)


def _both(one: BeforeAfter, review: EndpointReview, write: Callable[[float], str]) -> str:
    """Write a figure; `–` where there is no such side, `unknown` where the side can't be read."""
    sides = ((one.before, review.before), (one.after, review.after))
    before, after = (
        write(value) if value is not None else "–" if state is None else "unknown" for value, state in sides
    )
    return before if before == after else f"{before} → {after}"


def cost_lines(review: EndpointReview) -> list[str]:
    """Write each price of the planned size, and that of the update where it is another."""
    lines = [f"{COST_NAMES[one.name]}: {price_words(one, review)}" for one in costs(review)]
    during = update_usd_per_hour(review)
    hourly = next(one for one in costs(review) if one.name == COSTS[0])
    if during is None or during in {hourly.before, hourly.after}:
        return lines
    return [*lines, f"per hour while the update lasts: {usd(during)}"]


def has_new_costs(review: EndpointReview) -> bool:
    """Tell whether a price of what the checkout deploys is another one, or the update itself costs something."""
    if review.plans[1] is None:
        return False
    return len(cost_lines(review)) > len(COSTS) or any(one.before != one.after for one in costs(review))


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


def not_compared(review: EndpointReview) -> str:
    """Say why the resources of an endpoint are not compared; empty where they are."""
    if review.consequences is not None or review.is_size:
        return ""
    if review.after is None:
        return (
            "The app no longer has the stack. CloudFormation keeps it until `cdk destroy` or a deletion of the stack."
        )
    if review.is_blocked and not errors_of(review):
        return "What is deployed stays until a plan is promoted (`seatrial promote`)."
    if review.is_blocked:
        return "The resources can't be compared before the errors are mended."
    return "The base can't be synthesized, so the resources are not compared."


def moved_line(review: EndpointReview) -> str:
    """Say what becomes of the old stack of what goes to another account or region; empty where nothing does."""
    if not review.is_moved:
        return ""
    return f"It is deployed anew. The stack in {_location(review.before)} stays deployed until it is deleted."


def changed_quotas(review: Review) -> tuple[QuotaNeed, ...]:
    """Return the instance types of which another number is needed, while the update lasts or afterwards."""
    return tuple(one for one in review.quotas if not one.before == one.during == one.after)
