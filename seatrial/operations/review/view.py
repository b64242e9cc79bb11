"""Figures and words of an update and of a review, for terminal, comment and document.

The renderers choose layout and marks; whatever is computed, counted or worded is here once.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from seatrial.operations.checkout import MERGE_BASE
from seatrial.operations.effect import TITLES
from seatrial.operations.review.review import more_instances
from seatrial.operations.template_diff import ORDER
from seatrial_base.units import counted, usd, whole_or_tenths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.consequences import ChangeWithEffects, Consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.review.review import EndpointReview, QuotaNeed, Review
    from seatrial.operations.review.side import EndpointState
    from seatrial.operations.template_diff import ResourceChange
    from seatrial_base.findings import Finding

    CostName = Literal["usd_per_hour", "usd_per_million_output_tokens", "blended_usd_per_million_tokens"]

MOST_PROPERTIES: Final = 8
PREFLIGHT: Final = "`seatrial preflight` checks that the account's quotas are large enough."
UNTOUCHED: Final = "No copy that serves is started, stopped or moved."
NOTHING: Final = "No endpoint changes."
OF_A_PRODUCT: Final = {
    "new": "Teams can launch it once its stack is deployed.",
    "removed": "Teams can't launch or update it any more. What they have launched stays.",
    "changed": "What teams have launched stays on its version until they update it.",
}
"""What a change of a product means for teams."""
COSTS: Final[dict[CostName, str]] = {
    "usd_per_hour": "per hour",
    "usd_per_million_output_tokens": "per million output tokens",
    "blended_usd_per_million_tokens": "per million tokens (3 input to 1 output)",
}
"""The prices of the planned size, by the names of the plan's fields."""


def action_words(action: str) -> str:
    """Return what becomes of a resource."""
    return "updated in place" if action == "updated" else action


def more_values(count: int) -> str:
    """Return how many values are left out of those of a resource; empty where none is."""
    return counted(count - MOST_PROPERTIES, "more value") if count > MOST_PROPERTIES else ""


@dataclass(frozen=True, slots=True)
class EffectView:
    """An effect as it is shown; `needs` is empty where it needs no instance meanwhile."""

    title: str
    because: str
    needs: str


@dataclass(frozen=True, slots=True)
class UpdateView:
    """An update of one stack as it is shown; what is unchanged is only counted."""

    update: Consequences

    @property
    def rows(self) -> list[ChangeWithEffects]:
        """The resources that change."""
        return [row for row in self.update.rows if row.change.action != "unchanged"]

    def action(self, change: ResourceChange) -> str:
        """Return what becomes of a resource, by which properties, and whether the old one is kept."""
        because = f" (by {', '.join(change.replaced_by)})" if change.replaced_by else ""
        kept = "; the old one stays in the account" if change.is_retained else ""
        return f"{action_words(change.action)}{because}{kept}"

    def effects(self, row: ChangeWithEffects) -> list[EffectView]:
        """Return the effects of a change."""
        return [
            EffectView(TITLES[effect.kind], effect.because, self._needs(effect.instances, effect.most_instances))
            for effect in row.effects
        ]

    def summary(self) -> Iterator[str]:
        """Yield warnings, the count of resources, the outputs, and what the whole update needs."""
        update = self.update
        if update.diff.is_empty:
            yield "Nothing changes."
            return
        yield from (f"{warning.rule}: {warning.message}; {warning.hint}." for warning in update.warned)
        numbers = Counter(row.change.action for row in update.rows)
        parts = [f"{numbers[action]} {action_words(action)}" for action in ORDER if numbers[action]]
        yield f"{counted(len(update.rows), 'resource')}: {', '.join(parts)}."
        is_first = not update.diff.old.resources
        if update.diff.outputs and not is_first:
            yield f"Outputs that change: {', '.join(update.diff.outputs)}."
        if not update.touches_copies:
            yield UNTOUCHED
        if needs := self._needs(update.instances, update.most_instances):
            yield f"Most that is needed at once{'' if is_first else ', on top of what serves'}: {needs}."
            yield PREFLIGHT
        if update.refused:
            yield f"Refused: {counted(len(update.refused), 'change')}, listed below."

    def _needs(self, instances: int, most: int) -> str:
        """Write what is needed at the planned copies, and at the most copies where that is more."""
        size = self.update.size
        if not most:
            return ""
        at_planned = f"{instances} × {size.instance_type}{_price(instances, size)}"
        if most == instances:
            return at_planned
        return f"{at_planned}; at {size.max_copies} copies {most} × {size.instance_type}{_price(most, size)}"


def _price(instances: int, size: PlannedSize) -> str:
    if not instances:
        return ""
    price = size.hourly(instances)
    return ", at an unknown price" if price is None else f", {usd(price)} per hour"


@dataclass(frozen=True, slots=True)
class BeforeAfter:
    """A figure on both sides; `None` where it is unknown, or there is no such side."""

    before: float | None
    after: float | None


@dataclass(frozen=True, slots=True)
class CurveRow:
    """What one copy is predicted to do at one concurrency on both sides; `None` where that is no level of the plan."""

    concurrency: int
    before: CurvePoint | None
    after: CurvePoint | None


@dataclass(frozen=True, slots=True)
class EndpointView:
    """One endpoint, or one size of a product, in an environment as it is shown."""

    review: EndpointReview

    @property
    def changed_parts(self) -> str:
        """Its parts that change."""
        review = self.review
        if review.change != "changed":
            return review.change
        if review.is_moved:
            return f"moved from {_location(review.before)} to {_location(review.after)}"
        update = review.consequences
        changes = {
            "spec": bool(review.spec),
            "plan": bool(review.plan),
            "configuration": bool(review.files),
            "resources": update is not None and not update.diff.is_empty,
        }
        return ", ".join(name for name, is_changed in changes.items() if is_changed) or "findings"

    @property
    def effect(self) -> str:
        """What users may notice, the greatest first, or why there is nothing to name."""
        review = self.review
        if review.refused:
            return f"refused: {_rules(review.refused)}"
        if review.is_blocked:
            rules = _rules(self.errors)
            verb = "published" if review.is_size else "deployed"
            return f"can't be {verb}: {rules}" if rules else "as deployed until it is promoted"
        if review.is_size:
            return "teams can launch it" if review.before is None else "what is launched stays"
        if review.consequences is not None:
            kept = ["the old stack stays deployed until it is deleted"] if review.is_moved else []
            return "; ".join([*(TITLES[kind] for kind in review.consequences.noticed), *kept])
        return "stays deployed until its stack is deleted" if review.after is None else "not compared"

    @property
    def errors(self) -> tuple[Finding, ...]:
        """Why the checkout can't be deployed, whether the base could be or not."""
        findings = (*self.review.findings, *self.review.known_findings)
        return tuple(finding for finding in findings if finding.severity == "error")

    @property
    def note(self) -> str:
        """Why the resources are not compared, or what becomes of the old stack of what moves; empty without either."""
        review = self.review
        if review.consequences is not None:
            moved = f"It is deployed again. The stack in {_location(review.before)} stays deployed until it is deleted."
            return moved if review.is_moved else ""
        if review.is_size:
            return ""
        if review.after is None:
            return (
                "The app no longer has the stack. CloudFormation keeps it until `cdk destroy` or a deletion of the "
                "stack."
            )
        if review.is_blocked and not self.errors:
            return "What is deployed stays until a plan is promoted (`seatrial promote`)."
        if review.is_blocked:
            return "The resources can't be compared before the errors are fixed."
        return "The base can't be synthesized, so the resources are not compared."

    @property
    def extra_instances(self) -> list[str]:
        """The instances that the update needs at most beyond those of before."""
        return [f"{number} × {name}" for name, number in more_instances(self.review).items()]

    def cost(self, name: CostName) -> BeforeAfter:
        """Return a price of the planned size, in US dollars."""
        return BeforeAfter(*(None if plan is None else dict(plan.cost)[name] for plan in self.review.plans))

    @property
    def update_usd_per_hour(self) -> float | None:
        """What the instances cost while the update lasts, in US dollars per hour; `None` when it is unknown.

        A first deployment costs what the endpoint costs; a second endpoint runs next to the first.
        """
        update = self.review.consequences
        if update is None:
            return None
        extra = update.size.hourly(update.instances)
        running = 0.0 if self.review.before is None else self.cost("usd_per_hour").before
        return None if extra is None or running is None else running + extra

    @property
    def cost_lines(self) -> list[str]:
        """Each price of the planned size, and that of the update where it is another."""
        after = self.review.plans[1]
        whose = "" if after is None else after.cost.elsewhere
        lines = [f"{words}: {self.price_words(name)}{whose}" for name, words in COSTS.items()]
        during, hourly = self.update_usd_per_hour, self.cost("usd_per_hour")
        # A third price only where it is another: most updates need no more than the larger of both sides.
        if during is None or during in {hourly.before, hourly.after}:
            return lines
        return [*lines, f"per hour while the update lasts: {usd(during)}"]

    @property
    def has_new_costs(self) -> bool:
        """Whether a price of what the checkout deploys is another one, or the update itself costs something."""
        if self.review.plans[1] is None:
            return False
        prices = [self.cost(name) for name in COSTS]
        return len(self.cost_lines) > len(COSTS) or any(price.before != price.after for price in prices)

    def price_words(self, name: CostName) -> str:
        """Write a price before and after; once where both are equal. What is removed from the app costs on."""
        cost = self.cost(name)
        if self.review.after is None and cost.before is not None and not self.review.is_size:
            return f"{usd(cost.before)} until its stack is destroyed"
        return self._both(cost, usd)

    @property
    def knee(self) -> BeforeAfter:
        """The predicted knee of one copy, in requests in flight."""
        return BeforeAfter(*(None if plan is None else float(plan.knee.concurrency) for plan in self.review.plans))

    @property
    def gate(self) -> BeforeAfter:
        """The gate of the trial per copy, in requests in flight."""
        plans = self.review.plans
        return BeforeAfter(*(None if plan is None else float(plan.gate_concurrency_per_copy.value) for plan in plans))

    def concurrency_words(self, figure: BeforeAfter) -> str:
        """Write a number of requests in flight before and after; once where both are equal."""
        return self._both(figure, whole_or_tenths)

    def _both(self, figure: BeforeAfter, write: Callable[[float], str]) -> str:
        """Write a figure; `–` where there is no such side, `unknown` where the side can't be read."""
        sides = ((figure.before, self.review.before), (figure.after, self.review.after))
        before, after = (
            write(value) if value is not None else "–" if state is None else "unknown" for value, state in sides
        )
        return before if before == after else f"{before} → {after}"

    @property
    def curve(self) -> list[CurveRow]:
        """The predicted curves of both sides, level by level."""
        before, after = (
            {} if plan is None else {point.concurrency: point for point in plan.curve} for plan in self.review.plans
        )
        levels = sorted(before.keys() | after.keys())
        return [CurveRow(level, before.get(level), after.get(level)) for level in levels]

    @property
    def changed_curve(self) -> list[CurveRow]:
        """The same; none where both sides are the same, or a side that exists has none."""
        before, after = self.review.plans
        # Next to a side that exists and can't be read, every level would look new.
        is_known = after is not None and (before is not None or self.review.before is None)
        rows = self.curve if is_known else []
        return rows if any(row.before != row.after for row in rows) else []


def _location(state: EndpointState | None) -> str:
    environment = None if state is None or state.deployment is None else state.deployment.environment
    return "" if environment is None else " ".join(filter(None, (environment.account, environment.region)))


def _rules(findings: tuple[Finding, ...]) -> str:
    return ", ".join(sorted({finding.rule for finding in findings}))


def level_figures(point: CurvePoint | None) -> tuple[str, str, str]:
    """Write tokens per second, TTFT and TPOT in milliseconds of a level."""
    if point is None:
        return "–", "–", "–"
    return f"{point.output_tok_s:,.0f}", f"{point.ttft_p95_ms:,.0f}", f"{point.tpot_p95_ms:,.1f}"


def band_words(plan: Plan | None) -> str:
    """Return how far the prediction of a plan may be off; empty without one."""
    if plan is None:
        return ""
    return f"throughput ± {plan.band.throughput:.0%}, latency ± {plan.band.latency:.0%}"


def review_headlines(review: Review, base: str) -> Iterator[str]:
    """Yield how much changes, and that the base has commits which the checkout lacks, where it has some."""
    compared = counted(review.compared, "endpoint and environment", "endpoints and environments")
    if review.is_empty:
        yield f"{NOTHING} {compared} compared."
    else:
        products = f" Products that change: {len(review.products)}." if review.products else ""
        yield f"{counted(len(review.endpoints), 'change')} in {compared}.{products}"
        yield from _hourly_totals(review)
    if review.ahead:
        yield (
            f"{base} has {counted(review.ahead, 'commit')} that this checkout lacks; what they change is shown "
            f"backwards. Give {base}{MERGE_BASE} (with three dots) to compare with the merge base."
        )


def _hourly_totals(review: Review) -> Iterator[str]:
    """Yield what the changed endpoints of each environment cost together, before and after, where there are several."""
    by_environment: dict[str, list[BeforeAfter]] = {}
    for each in review.endpoints:
        cost = EndpointView(each).cost("usd_per_hour")
        sides = (0.0 if each.before is None else cost.before, cost.before if each.after is None else cost.after)
        by_environment.setdefault(each.place.environment, []).append(BeforeAfter(*sides))
    for environment, costs in by_environment.items():
        known = [(cost.before, cost.after) for cost in costs if cost.before is not None and cost.after is not None]
        if len(costs) == 1 or not known:
            continue
        before, after = (usd(sum(side)) for side in zip(*known, strict=True))
        shown = before if before == after else f"{before} → {after}"
        unknown = f"; {len(costs) - len(known)} without a price are not in it" if len(known) < len(costs) else ""
        yield f"Per hour in {environment}, {counted(len(known), 'changed endpoint')}: {shown}{unknown}."


def changed_quotas(review: Review) -> list[QuotaNeed]:
    """Return the instance types of which another number is needed, while the update lasts or afterwards."""
    return [need for need in review.quotas if not need.before == need.during == need.after]
