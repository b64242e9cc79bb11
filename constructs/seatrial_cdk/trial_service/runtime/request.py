"""A request of CloudFormation: which of an endpoint's two custom resources it is for, and what becomes of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial_cdk.trial_service.runtime.candidate import candidate_answer
from seatrial_cdk.trial_service.runtime.custom_resource import TrialProperties, deleted, deployed_answer

if TYPE_CHECKING:
    from seatrial_cdk.trial_service.runtime.custom_resource import Answer, CustomResourceEvent
    from seatrial_cdk.trial_service.runtime.surroundings import Surroundings


def answered_at_once(event: CustomResourceEvent, around: Surroundings) -> Answer | None:
    """Return the answer to a request; `None` when the workflow gives it.

    Raises:
        UnavailableError: AWS did not answer, or the owner can't be written.
        DirectionUnknownError: It can't be told whether the stack goes forward or back.
        KeyError: A property is missing.
    """
    if event["RequestType"] == "Delete":
        return deleted(event, around)
    properties = TrialProperties.of(event["ResourceProperties"])
    answer = candidate_answer if properties.phase == "candidate" else deployed_answer
    return answer(event, properties, around)
