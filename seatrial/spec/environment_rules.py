"""What an environment's fields must be to one another and to AWS, looked up in the raw document."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog.regions import INFERENCE_COMPONENT, availability
from seatrial.errors import Problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.spec.environment import EnvironmentSpec
    from seatrial.spec.merge import Document

_PAIR = ("subnet_ids", "security_group_ids")


def network_problems(document: Document) -> Iterator[Problem]:
    """Yield the half of a VPC that is missing: the service takes subnets and security groups together."""
    network = document.data.get("network")
    if not isinstance(network, dict):
        return
    given = [name for name in _PAIR if network.get(name)]
    if len(given) == 1:
        (missing,) = set(_PAIR) - set(given)
        path = ("network", given[0])
        message = f"{given[0]} are given, and {missing} are not"
        yield Problem(
            document.where(path), document.field(path), "SEA108", message, "give both, or none for no VPC of your own"
        )


def tag_problems(document: Document) -> Iterator[Problem]:
    """Yield the tags that AWS keeps for itself."""
    tags = document.data.get("tags")
    for key in tags if isinstance(tags, dict) else ():
        if key.lower().startswith("aws:"):
            path = ("tags", key)
            message = f"the key {key} begins with aws:, which AWS keeps for itself"
            yield Problem(document.where(path), document.field(path), "SEA107", message, "name it otherwise")


def region_problems(environment: EnvironmentSpec, document: Document) -> Iterator[Problem]:
    """Yield a region where inference components can't be deployed."""
    known = availability()
    if environment.region in known.regions:
        return
    message = f"{environment.region} has no {INFERENCE_COMPONENT} ({known.source.partition(',')[0]}, {known.date})"
    hint = f"known to have it: {', '.join(known.regions)}"
    yield Problem(document.where(("region",)), "region", "SEA107", message, hint)
