"""A review as a document for programs: all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.operations.render import document_of, needs_document
from seatrial.operations.review.figures import costs, curve, gates, knees, update_usd_per_hour
from seatrial_base.printer import finding_rows

if TYPE_CHECKING:
    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.consequences import Consequences
    from seatrial.operations.review.fields import FieldChange
    from seatrial.operations.review.figures import BeforeAfter
    from seatrial.operations.review.review import EndpointReview, Review

REVIEW_SCHEMA = "2"


def review_document(review: Review, *, base: str) -> dict[str, object]:
    """Return a review as a document.

    Args:
        review: The review.
        base: The revision that is compared with, as the user gave it.
    """
    return {
        "schema_version": REVIEW_SCHEMA,
        "base": base,
        "is_empty": review.is_empty,
        "compared": review.compared,
        "base_commits_ahead": review.ahead,
        "endpoints": [_endpoint(one) for one in review.endpoints],
        "services": [
            {
                "environment": one.environment,
                "resources": [
                    {"logical_id": change.logical_id, "type": change.resource_type, "action": change.action}
                    for change in one.diff.changes
                    if change.action != "unchanged"
                ],
            }
            for one in review.services
        ],
        "quotas": [
            {
                "environment": one.environment,
                "instance_type": one.instance_type,
                "before": one.before,
                "during": one.during,
                "after": one.after,
            }
            for one in review.quotas
        ],
        "unlocked": list(review.unlocked),
        "products": [
            {
                "product": one.name,
                "change": one.change,
                "fields": [_field(field) for field in one.fields],
                "sizes": [_endpoint(size) for size in one.sizes],
                "findings": finding_rows(one.findings),
            }
            for one in review.products
        ],
    }


def _endpoint(review: EndpointReview) -> dict[str, object]:
    found, (before, after) = review.consequences, review.plans
    return {
        "endpoint": review.place.endpoint,
        "environment": review.place.environment,
        "change": review.change,
        "is_blocked": review.is_blocked,
        "is_moved": review.is_moved,
        "risk": None if found is None else found.risk,
        "touches_copies": None if found is None else found.touches_copies,
        "spec": [_field(one) for one in review.spec],
        "plan": [{"field": one.field, "old": one.old, "new": one.new, "because": one.because} for one in review.plan],
        "files": [{"name": one.name, "diff": list(one.lines)} for one in review.files],
        "resources": [] if found is None else [document_of(row, found.size) for row in found.rows],
        "needs": None if found is None else _needs(found),
        "curve": [
            {"concurrency": row.concurrency, "before": _point(row.before), "after": _point(row.after)}
            for row in curve(review)
        ],
        "band": {"before": _band(before), "after": _band(after)},
        "costs": {one.name: _pair(one) for one in costs(review)},
        "update_usd_per_hour": update_usd_per_hour(review),
        "knee": _pair(knees(review)),
        "gate": _pair(gates(review)),
        "findings": finding_rows(review.findings),
        "known_findings": finding_rows(review.known_findings),
        "refused": finding_rows(review.refused),
    }


def _field(change: FieldChange) -> dict[str, str | None]:
    return {"field": change.field, "old": change.old, "new": change.new}


def _needs(found: Consequences) -> dict[str, object]:
    return needs_document(found.instances, found.most_instances, found.size)


def _pair(one: BeforeAfter) -> dict[str, float | None]:
    return {"before": one.before, "after": one.after}


def _point(point: CurvePoint | None) -> dict[str, float] | None:
    if point is None:
        return None
    return {
        "output_tok_s": point.output_tok_s,
        "ttft_p95_ms": point.ttft_p95_ms,
        "tpot_p95_ms": point.tpot_p95_ms,
    }


def _band(plan: Plan | None) -> dict[str, float] | None:
    return None if plan is None else {"throughput": plan.band.throughput, "latency": plan.band.latency}
