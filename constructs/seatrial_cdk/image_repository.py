"""The ECR repository behind an image URI, so that pulling can be granted on it alone."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from aws_cdk import Annotations

from seatrial_base.errors import RenderError
from seatrial_cdk.place import TOKEN_MARKER

if TYPE_CHECKING:
    from aws_cdk import aws_ecr as ecr
    from constructs import Construct

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


def repository_of(
    scope: Construct, image: str, repository: ecr.IRepository | None
) -> ImageRepository | ecr.IRepository | None:
    """Return the repository that an image is pulled from.

    An image that is a token names no repository: that is an error of the construct, told at synthesis with all others.

    Args:
        scope: The construct that pulls it.
        image: URI of the image, or a token of it.
        repository: The repository, where the URI does not tell.

    Raises:
        RenderError: SEA303 when the URI names no private ECR repository.
    """
    if repository is not None or TOKEN_MARKER not in image:
        return repository or ImageRepository.of(image)
    message = "SEA440: the image is a token, so its repository is unknown. Give image_repository beside it."
    Annotations.of(scope).add_error(message)
    return None
