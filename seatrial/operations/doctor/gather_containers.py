"""What the containers of an endpoint told CloudWatch in the last minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from seatrial.operations.doctor.facts import ContainerFacts
from seatrial_load.aws.container_metrics import (
    COMPONENT_LABEL,
    ENDPOINT_LABEL,
    VARIANT_LABEL,
    read_container_series,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from seatrial.account.reader import AwsReader
    from seatrial.documents.live_endpoint import LiveComponent, LiveEndpoint
    from seatrial_load.aws.container_metrics import PromQl

LOOKED_S: Final = 900.0
"""How far back is looked, in seconds: 15 values at SageMaker's usual frequency."""


def container_facts(
    endpoint: LiveEndpoint,
    components: Iterable[LiveComponent],
    ask: PromQl | None,
    *,
    name: str,
    at: datetime,
    reader: AwsReader,
) -> Iterator[ContainerFacts]:
    """Yield what the containers of each component and of each variant with a model told; nothing of those that did not.

    Args:
        endpoint: The endpoint.
        components: Its components; candidates of trials are left out.
        ask: Answers queries; None where nobody is asked.
        name: The endpoint's name.
        at: The time.
        reader: Keeps what could not be asked.
    """
    if ask is None:
        return
    places = [(f"inference component {each.name}", {COMPONENT_LABEL: each.name}) for each in components
              if each.copies and not each.is_candidate]  # fmt: skip
    places += [(f"variant {each.name}", {ENDPOINT_LABEL: name, VARIANT_LABEL: each.name}) for each in endpoint.variants
               if each.model and each.current]  # fmt: skip
    for part, labels in places:
        try:
            found = _facts(ask, part, labels, at.timestamp())
        except (OSError, ValueError) as refused:
            reader.not_asked.append(f"metrics of the containers: {refused}")
            return
        if not found.load.is_empty:
            yield found


def _facts(ask: PromQl, part: str, labels: Mapping[str, str], now_s: float) -> ContainerFacts:
    series = read_container_series(ask, labels, from_s=now_s - LOOKED_S, to_s=now_s)
    return ContainerFacts(part, series.load(now_s - LOOKED_S, now_s), series.simulated_by)
