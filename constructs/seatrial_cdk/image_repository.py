"""The ECR repository behind an image URI, so that pulling can be granted on it alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self

from seatrial.errors import RenderError

_PRIVATE_ECR = re.compile(
    r"(?P<account>[0-9]{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.amazonaws\.com(\.cn)?"
    r"/(?P<name>[a-z0-9._/-]+)(:[\w.-]+)?(@sha256:[0-9a-f]{64})?"
)


@dataclass(frozen=True, slots=True)
class ImageRepository:
    """One private ECR repository; AWS's own containers live in accounts of AWS, one per region."""

    account: str
    region: str
    name: str

    @classmethod
    def of(cls, image: str) -> Self:
        """Read the repository out of an image URI.

        Raises:
            RenderError: SEA303 when the image is not in a private ECR repository, where SageMaker pulls from.
        """
        match = _PRIVATE_ECR.fullmatch(image)
        if match is None:
            hint = "write it as ACCOUNT.dkr.ecr.REGION.amazonaws.com/REPOSITORY:TAG"
            raise RenderError.of("SEA303", f"the image {image} is in no private ECR repository", hint=hint)
        return cls(match["account"], match["region"], match["name"])

    def arn(self, partition: str) -> str:
        """Return the repository's ARN."""
        return f"arn:{partition}:ecr:{self.region}:{self.account}:repository/{self.name}"
