"""A plan whose image is named by its digest: a tag can be moved to another image, a digest can't."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.plan.document import Decision, Image

if TYPE_CHECKING:
    from collections.abc import Mapping

    from seatrial.plan.document import Plan

_AT = "@sha256:"
_GIVEN = " The digest is the one that its registry gave for the tag"


def digest_of(uri: str) -> str | None:
    """Return the digest that an image's address names, as `sha256:…`; `None` when it names a tag alone."""
    _, at, digest = uri.partition(_AT)
    return f"sha256:{digest}" if at else None


def pin(plan: Plan, digest: str) -> Plan:
    """Return the plan with its image named by a digest. The tag stays beside it; SageMaker takes one of the two.

    Args:
        plan: The plan.
        digest: As `sha256:…`, which the registry gives for the plan's tag.
    """
    image = plan.image.value
    uri = f"{place_of(image.uri)}@{digest}"
    because = f"{plan.image.because.partition(_GIVEN)[0]}{_GIVEN} {image.tag}."
    named: Decision[Image] = Decision(value=Image(uri=uri, repository=image.repository, tag=image.tag), because=because)
    return plan.model_copy(update={"image": named})


def keep_digest(locked: Mapping[str, object] | None, plan: Plan) -> Plan:
    """Return the plan with the digest that is locked, when both name the same tag of the same registry.

    Args:
        locked: The plan that was locked before, as it was written; `None` when there was none.
        plan: The plan now.
    """
    image = locked.get("image") if locked is not None else None
    value = image.get("value") if isinstance(image, dict) else None
    if not isinstance(value, dict) or digest_of(plan.image.value.uri) is not None:
        return plan
    before, now = Image.model_validate(value), plan.image.value
    digest = digest_of(before.uri)
    same = (place_of(before.uri), before.tag) == (place_of(now.uri), now.tag)
    return pin(plan, digest) if digest is not None and same else plan


def place_of(uri: str) -> str:
    """Return the registry and repository of an image's address, without tag or digest."""
    registry, _, rest = uri.partition("/")
    return f"{registry}/{rest.partition('@')[0].partition(':')[0]}"
