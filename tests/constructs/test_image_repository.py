from __future__ import annotations

import pytest

from seatrial_base.errors import RenderError
from seatrial_cdk.endpoint.execution_role import ImageRepository

DIGEST = f"@sha256:{'0' * 64}"


@pytest.mark.parametrize(
    ("image", "partition", "arn"),
    [
        (
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130",
            "aws",
            "arn:aws:ecr:us-east-1:763104351884:repository/djl-inference",
        ),
        (
            f"123456789012.dkr.ecr.eu-west-1.amazonaws.com/team/serving{DIGEST}",
            "aws",
            "arn:aws:ecr:eu-west-1:123456789012:repository/team/serving",
        ),
        (
            "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn/djl-inference:1",
            "aws-cn",
            "arn:aws-cn:ecr:cn-north-1:727897471807:repository/djl-inference",
        ),
    ],
)
def test_the_arn_names_the_repository(image: str, partition: str, arn: str) -> None:
    assert ImageRepository.of(image).arn(partition) == arn


@pytest.mark.parametrize("image", ["public.ecr.aws/docker/library/busybox:latest", "vllm/vllm-openai:v0.20", ""])
def test_an_image_elsewhere_is_refused(image: str) -> None:
    with pytest.raises(RenderError) as refused:
        ImageRepository.of(image)
    assert str(refused.value) == (
        f"SEA303: the image {image} is in no private ECR repository\n"
        "  hint: write it as ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG"
    )
