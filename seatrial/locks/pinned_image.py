"""The digest of a plan's image: a plan names its image by it, and a new plan keeps it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import Decision, Image
from seatrial_base.catalog.images import image_digest, image_repository_uri
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.documents.plan import Plan

_GIVEN = " The digest is the one that its registry gave for the tag"


def pin_image(plan: Plan, digest: str) -> Plan:
    """Return the plan with its image named by a digest. The tag stays beside it; SageMaker takes one of the two.

    Provenance ends with it: what was tried was named otherwise.

    Args:
        plan: The plan.
        digest: As `sha256:…`, which the registry gives for the plan's tag.
    """
    image = plan.image.value
    uri = f"{image_repository_uri(image.uri)}@{digest}"
    because = f"{plan.image.because.partition(_GIVEN)[0]}{_GIVEN} {image.tag}."
    named: Decision[Image] = Decision(value=Image(uri=uri, repository=image.repository, tag=image.tag), because=because)
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
        plan: The plan now.
    """
    image = locked.get("image") if locked is not None else None
    value = image.get("value") if isinstance(image, dict) else None
    if not isinstance(value, dict) or image_digest(plan.image.value.uri) is not None:
        return plan
    before, now = Image.model_validate(value), plan.image.value
    digest = image_digest(before.uri)
    same = (image_repository_uri(before.uri), before.tag) == (image_repository_uri(now.uri), now.tag)
    return pin_image(plan, digest) if digest is not None and same else plan
