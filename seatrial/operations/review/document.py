"""An update and a review as documents for programs: all of them."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

from seatrial.operations.review.view import COSTS, EndpointView
from seatrial_base.printer import finding_rows
from seatrial_base.units import GIB

if TYPE_CHECKING:
    from seatrial.documents.plan import CurvePoint, Plan
    from seatrial.operations.consequences import ChangeWithEffects, Consequences
    from seatrial.operations.effect import PlannedSize
    from seatrial.operations.review.review import EndpointReview, Review

SCHEMA: Final = "2"
REVIEW_SCHEMA: Final = "2"


def consequences_document(update: Consequences, *, stack: str, old: str, new: str) -> dict[str, object]:
    """Return an update as a document, with every resource; `old` and `new` name its templates."""
    return {
        "schema_version": SCHEMA,
        "stack": stack,
        "old": old,
        "new": new,
        "is_empty": update.diff.is_empty,
        "touches_copies": update.touches_copies,
        "resources": [_resource(row, update.size) for row in update.rows],
        "outputs": list(update.diff.outputs),
        "needs": _needs(update.instances, update.most_instances, update.size),
        "refused": finding_rows(update.refused),
        "warned": finding_rows(update.warned),
    }


def _resource(row: ChangeWithEffects, size: PlannedSize) -> dict[str, object]:
    change = row.change
    return {
        "logical_id": change.logical_id,
        "type": change.resource_type,
        "action": change.action,
        "replaced_by": list(change.replaced_by),
        "is_retained": change.is_retained,
        "properties": [
            {"path": value.path, "old": value.old, "new": value.new, "follows": value.follows}
            for value in change.properties
        ],
        "effects": [
            {
                "kind": effect.kind,
                "because": effect.because,
                "needs": _needs(effect.instances, effect.most_instances, size),
                "download_gib_per_copy": round(size.weights_bytes / GIB, 1) if effect.kind == "download" else None,
            }
            for effect in row.effects
        ],
    }


def _needs(instances: int, most: int, size: PlannedSize) -> dict[str, object]:
    """Return what is needed on top of what serves."""
    prices = [size.hourly(count) for count in (instances, most)]
    usd_per_hour, most_usd_per_hour = (None if price is None else round(price, 4) for price in prices)
    return {
        "instance_type": size.instance_type,
        "instances": instances,
        "usd_per_hour": usd_per_hour,
        "most_instances": most,
        "most_usd_per_hour": most_usd_per_hour,
    }


def review_document(review: Review, *, base: str) -> dict[str, object]:
    """Return a review as a document; `base` is the revision that is compared with, as the user gave it."""
    return {
        "schema_version": REVIEW_SCHEMA,
        "base": base,
        "is_empty": review.is_empty,
        "compared": review.compared,
        "base_commits_ahead": review.ahead,
        "endpoints": [_endpoint(endpoint) for endpoint in review.endpoints],
        "services": [
            {
                "environment": service.environment,
                "resources": [
                    {"logical_id": change.logical_id, "type": change.resource_type, "action": change.action}
                    for change in service.diff.changes
                    if change.action != "unchanged"
                ],
            }
            for service in review.services
        ],
        "quotas": [asdict(need) for need in review.quotas],
        "unlocked": list(review.unlocked),
        "products": [
            {
                "product": product.name,
                "change": product.change,
                "fields": [asdict(field) for field in product.fields],
                "sizes": [_endpoint(size) for size in product.sizes],
                "findings": finding_rows(product.findings),
            }
            for product in review.products
        ],
    }


def _endpoint(review: EndpointReview) -> dict[str, object]:
    view, update, (before, after) = EndpointView(review), review.consequences, review.plans
    return {
        "endpoint": review.place.endpoint,
        "environment": review.place.environment,
        "change": review.change,
        "is_blocked": review.is_blocked,
        "is_moved": review.is_moved,
        "risk": None if update is None else update.risk,
        "touches_copies": None if update is None else update.touches_copies,
        "spec": [asdict(field) for field in review.spec],
        "plan": [asdict(decision) for decision in review.plan],
        "files": [{"name": file.name, "diff": list(file.lines)} for file in review.files],
        "resources": [] if update is None else [_resource(row, update.size) for row in update.rows],
        "needs": None if update is None else _needs(update.instances, update.most_instances, update.size),
        "curve": [
            {"concurrency": row.concurrency, "before": _point(row.before), "after": _point(row.after)}
            for row in view.curve
        ],
        "band": {"before": _band(before), "after": _band(after)},
        "costs": {name: asdict(view.cost(name)) for name in COSTS},
        "update_usd_per_hour": view.update_usd_per_hour,
        "knee": asdict(view.knee),
        "gate": asdict(view.gate),
        "findings": finding_rows(review.findings),
        "known_findings": finding_rows(review.known_findings),
        "refused": finding_rows(review.refused),
    }


def _point(point: CurvePoint | None) -> dict[str, float] | None:
    names = ("output_tok_s", "ttft_p95_ms", "tpot_p95_ms")
    return None if point is None else {name: getattr(point, name) for name in names}


def _band(plan: Plan | None) -> dict[str, float] | None:
    return None if plan is None else {"throughput": plan.band.throughput, "latency": plan.band.latency}
