"""The service's limits on a container's environment."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_ENTRIES = 100  # SageMaker API, CreateModel, Environment map
MAX_CHARS = 1024  # of a name, and of a value (same map)
MAX_TOTAL_BYTES = 32 * 1024  # SageMaker developer guide, container environment


def env_problems(env: Mapping[str, str], where: str) -> Iterator[Finding]:
    """Yield every limit on a container's environment that is broken."""
    if len(env) > MAX_ENTRIES:
        yield Finding("SEA302", Place.at(where), f"{len(env)} environment variables exceed {MAX_ENTRIES}")
    for name, value in env.items():
        for what, size in (("name", len(name)), ("value", len(value))):
            if size > MAX_CHARS:
                message = f"the {what} has {size} characters; the limit is {MAX_CHARS}"
                yield Finding("SEA302", Place.at(where, name[:40]), message, "move the option to serving.properties")
    total = sum(len(name.encode()) + len(value.encode()) for name, value in env.items())
    if total > MAX_TOTAL_BYTES:
        yield Finding("SEA302", Place.at(where), f"the environment's {total} bytes exceed {MAX_TOTAL_BYTES}")
