"""Asks a registry for the digest of an image's tag."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.account.reader import aws_failures, error_code
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from botocore.exceptions import ClientError
    from mypy_boto3_ecr import ECRClient
    from mypy_boto3_ecr.type_defs import ImageFailureTypeDef

_ADDRESS = re.compile(r"(?P<account>\d{12})\.dkr\.ecr\.(?P<region>[a-z0-9-]+)\.[^/]+/(?P<repository>[^:@]+)")
# Manifests as they are pushed: without them the registry may answer with a converted one, whose digest is another.
_MEDIA_TYPES = (
    "application/vnd.oci.image.index.v1+json",
    "application/vnd.oci.image.manifest.v1+json",
    "application/vnd.docker.distribution.manifest.list.v2+json",
    "application/vnd.docker.distribution.manifest.v2+json",
)


@dataclass(frozen=True, slots=True)
class ImageAddress:
    """The address of an image."""

    account: str
    region: str
    repository: str


def read_address(uri: str) -> ImageAddress:
    """Return the address of an image.

    Raises:
        SeatrialError: SEA350 when the address is none of Amazon ECR.
    """
    match = _ADDRESS.match(uri)
    if match is None:
        raise SeatrialError.of("SEA350", "not an Amazon ECR address", where=uri)
    return ImageAddress(**match.groupdict())


def read_digest(uri: str, tag: str, registry: ECRClient) -> str:
    """Return the digest of a tag as its registry has it now, as `sha256:…`.

    Raises:
        BenchError: As `aws_failures`: no credentials, no connection, no permission.
        SeatrialError: SEA351 when the registry lacks the image, SEA350 when it does not say.
    """
    address = read_address(uri)
    where = f"{uri.partition('/')[0]}/{address.repository}:{tag}"
    with aws_failures(where, lambda error: _refusal(error, where)):
        answer = registry.batch_get_image(
            registryId=address.account,
            repositoryName=address.repository,
            imageIds=[{"imageTag": tag}],
            acceptedMediaTypes=list(_MEDIA_TYPES),
        )
    for image in answer.get("images", ()):
        if digest := image.get("imageId", {}).get("imageDigest"):
            return digest
    nothing: ImageFailureTypeDef = {}
    failure = next(iter(answer.get("failures", ())), nothing)
    if failure.get("failureCode") == "ImageNotFound":
        raise SeatrialError.of("SEA351", "the registry has no such image", where=where, hint=_HINT)
    reason = failure.get("failureReason") or "the registry returned no digest"
    raise SeatrialError.of("SEA350", f"the digest can't be read: {reason}", where=where)


def _refusal(error: ClientError, where: str) -> SeatrialError:
    code = error_code(error)
    if code == "RepositoryNotFoundException":
        return SeatrialError.of("SEA351", "the registry has no such repository", where=where, hint=_HINT)
    return SeatrialError.of(
        "SEA350", f"the digest can't be read: {code}: {error.response['Error'].get('Message', '')}", where=where
    )


_HINT = "plan with another engine_version; `seatrial images list --region REGION` lists them"
