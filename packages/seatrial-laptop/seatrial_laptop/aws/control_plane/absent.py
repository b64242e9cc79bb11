"""What SageMaker answers of a resource that is not there to a caller whose rights depend on tags: it has none."""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from seatrial_laptop.aws.api import ApiError
from seatrial_laptop.aws.control_plane.records import Kind, arn_of
from seatrial_laptop.environment import own_account

if TYPE_CHECKING:
    from seatrial_laptop.aws.control_plane.cloud import Cloud
    from seatrial_laptop.aws.json_document import Document


def denial_of_absent(cloud: Cloud, operation: str, request: Document) -> ApiError | None:
    """Return the refusal of a request that names what is not there; None unless `absent_is_denied` is set.

    What a request creates or invokes is not looked for.
    """
    if not cloud.faults.settings().absent_is_denied or operation.startswith(("Create", "Invoke")):
        return None
    named = [(kind, str(request[f"{kind}Name"])) for kind in Kind if request.get(f"{kind}Name")]
    absent = next(((kind, name) for kind, name in named if cloud.store.find(kind, name) is None), None)
    if absent is None:
        return None
    message = (
        f"User: arn:aws:sts::{own_account()}:assumed-role/embedded-aws/session is not authorized to perform: "
        f"sagemaker:{operation} on resource: {arn_of(*absent)} because no identity-based policy allows the "
        f"sagemaker:{operation} action"
    )
    return ApiError("AccessDeniedException", message, HTTPStatus.BAD_REQUEST)
