"""One list tells a lack of capacity from any other failure, for the doctor and for the trial."""

from __future__ import annotations

import pytest

from seatrial_base.catalog.symptoms import is_lack_of_capacity


@pytest.mark.parametrize(
    "reason",
    [
        "InsufficientInstanceCapacity: 1 copies of x need 3 instances",
        "An error occurred (ResourceLimitExceeded) when calling the CreateInferenceComponent operation: too many",
        "The account-level service limit 'ml.g5.2xlarge for endpoint usage' is 1 Instances",
        "CapacityError: Unable to provision requested ML compute capacity. Please retry using a different type.",
        "Unable to provision requested ML compute capacity due to InsufficientInstanceCapacity error.",
        "We currently do not have sufficient ml.g5.2xlarge capacity in the Availability Zone you requested.",
        "The endpoint does not have enough capacity",
        "Request failed: Insufficient capacity.",
        "There are not enough hardware resources on the instances of the endpoint",
        "Insufficient accelerators for 1 copy",
        "There is no instance with enough accelerators",
    ],
)
def test_a_lack_of_capacity_is_told_by_its_code_or_a_whole_phrase(reason: str) -> None:
    assert is_lack_of_capacity(reason)


@pytest.mark.parametrize(
    "reason",
    [
        "",
        "The container ended with status 1",
        "The primary container did not pass the ping health check.",
        "CUDA driver version is insufficient for CUDA runtime version",
        "torch.OutOfMemoryError: CUDA out of memory",
        "AccessDeniedException: not authorized to perform sagemaker:CreateInferenceComponent",
        "ValueError: not enough tokens; see the resources of the model",
        "CUDA device does not have sufficient memory",
        "Execution role does not have sufficient permissions",
        "insufficient capacity of KV cache blocks",
        "There is insufficient capacity in the KV cache for 4096 tokens",
        "The engine does not have enough capacity for 4096 tokens",
        "The scheduler does not have enough KV capacity",
        "not enough values to unpack while the engine read its hardware",
    ],
)
def test_any_other_failure_is_none(reason: str) -> None:
    assert not is_lack_of_capacity(reason)
