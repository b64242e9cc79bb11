"""Facts that a lock pins of a plan: the digest of its image, and the trial after which it was promoted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image
from seatrial.specs.spec_files import lock_path
from seatrial_base.catalog.images import image_digest, image_repository_uri
from seatrial_base.errors import SeatrialError
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan, Promoted
    from seatrial.specs.load import LoadedSpec


_GIVEN = " The digest is the one that its registry gave for the tag"


def provenance_problems(plan: Plan, loaded: LoadedSpec) -> tuple[Finding, ...]:
    """Return that a locked plan lacks the provenance that its environment requires; none when it has it."""
    promotion, promoted = loaded.environment.promotion, plan.promoted
    if not promotion.required or (promoted is not None and promoted.source == promotion.source):
        return ()
    here, source = loaded.environment.name, promotion.source
    origin = "was not promoted" if promoted is None else f"was promoted from {promoted.source}"
    where = loaded.place.where(("promotion", "required"))
    message = f"the plan {origin}; promotion.required ({where}) asks for a passed trial in {source}"
    hint = f"run `{promotion_command(loaded)}`"
    return (Finding("SEA478", Place.at(lock_path(loaded.path).as_posix(), f"{here}.promoted"), message, hint),)


def promotion_command(loaded: LoadedSpec) -> str:
    """Return the command that writes a promoted plan into the lock of a spec."""
    source, here = loaded.environment.promotion.source, loaded.environment.name
    return f"seatrial promote {loaded.path.as_posix()} --from {source} --to {here} --write"


def unpromoted_problem(loaded: LoadedSpec) -> Finding | None:
    """Return that the environment takes promoted plans alone, so that no other is to be written; `None` otherwise."""
    if not loaded.environment.promotion.required:
        return None
    here, where = loaded.environment.name, loaded.place.where(("promotion", "required"))
    message = f"{here} takes promoted plans alone (promotion.required, {where})"
    hint = f"deploy the plan to {loaded.environment.promotion.source}, then run `{promotion_command(loaded)}`"
    return Finding("SEA478", Place.at(loaded.path.as_posix(), here), message, hint)


def provenance_lines(promoted: Promoted | None) -> tuple[str, ...]:
    """Return the trial that a plan was promoted after, as people read it; none where it was not promoted."""
    if promoted is None:
        return ()
    knee = promoted.knee_concurrency_per_copy
    result = "no knee" if knee is None else f"knee {knee:g} concurrent requests per copy"
    simulated = f"; simulated hardware: {promoted.engine_note}" if promoted.engine_note else ""
    return (
        f"promoted from {promoted.source}: trial passed, ended {promoted.ended_at}, {result}{simulated}",
        f"plan {promoted.plan_digest} of spec {promoted.spec_digest}, request {promoted.request_id or 'unknown'}",
        f"result {promoted.result_uri}",
    )


def pin_image(plan: Plan, digest: str) -> Plan:
    """Return the plan with its image named by a digest. The tag stays beside it; SageMaker takes one of the two.

    Provenance ends with it: what was tried was named otherwise.
    """
    image = plan.image.value
    uri = f"{image_repository_uri(image.uri)}@{digest}"
    because = f"{plan.image.because.partition(_GIVEN)[0]}{_GIVEN} {image.tag}."
    named: Decision[Image] = Decision(value=image.model_copy(update={"uri": uri}), because=because)
    return plan.model_copy(update={"image": named, "promoted": None})


def pin_same_image(plan: Plan, image: Image, digest: str) -> Plan:
    """Return the plan with its image named by the digest that was asked for an image.

    Raises:
        SeatrialError: SEA350, the plan names another image now.
    """
    if plan.image.value != image:
        message = f"the plan names another image since the registry was asked for {image.repository}:{image.tag}"
        raise SeatrialError.of("SEA350", message, where=plan.image.value.uri, hint="run the command again")
    return pin_image(plan, digest)


def keep_digest(locked: Mapping[str, object] | None, plan: Plan) -> Plan:
    """Return the plan with the digest that is locked, when both name the same tag of the same registry.

    Args:
        locked: The plan that was locked before, as it was written; `None` when there was none.
    """
    image = locked.get("image") if locked is not None else None
    value = image.get("value") if isinstance(image, dict) else None
    # A digest that the spec itself writes is kept as it is.
    if not isinstance(value, dict) or image_digest(plan.image.value.uri) is not None:
        return plan
    before, now = Image.model_validate(value), plan.image.value
    digest = image_digest(before.uri)
    same = (image_repository_uri(before.uri), before.tag) == (image_repository_uri(now.uri), now.tag)
    return pin_image(plan, digest) if digest is not None and same else plan
