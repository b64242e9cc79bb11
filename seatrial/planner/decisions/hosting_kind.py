"""The kind of endpoint that hosts the model, as far as it is not an inference component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from seatrial.documents.plan import Decision

if TYPE_CHECKING:
    from seatrial.specs.endpoint import EndpointSpec

_IN_VARIANT = "The model is in the production variant: one copy on each instance"


def decide_hosting_kind(endpoint: EndpointSpec) -> Decision[Literal["single_model", "asynchronous"]] | None:
    """Return the kind of an endpoint without inference components; `None` for one with them."""
    if endpoint.hosting.kind == "inference_component":
        return None
    if endpoint.hosting.asynchronous is None:
        return Decision(value="single_model", because=f"{_IN_VARIANT}.")
    because = f"{_IN_VARIANT}. Requests wait in a queue, and answers are written to S3."
    return Decision(value="asynchronous", because=because)
