from __future__ import annotations

from typing import TYPE_CHECKING, cast

import boto3
import pytest
from botocore.exceptions import NoCredentialsError
from botocore.stub import Stubber

from seatrial.account.images import ImageAddress, read_address, read_digest
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from mypy_boto3_ecr import ECRClient


DIGEST = "sha256:" + "1" * 64
URI = "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
ASKED = {
    "registryId": "763104351884",
    "repositoryName": "djl-inference",
    "imageIds": [{"imageTag": "0.36.0-lmi27.0.0-cu130"}],
    "acceptedMediaTypes": [
        "application/vnd.oci.image.index.v1+json",
        "application/vnd.oci.image.manifest.v1+json",
        "application/vnd.docker.distribution.manifest.list.v2+json",
        "application/vnd.docker.distribution.manifest.v2+json",
    ],
}


@pytest.fixture
def stub() -> Iterator[Stubber]:
    ecr = boto3.Session(aws_access_key_id="test", aws_secret_access_key="test").client("ecr", region_name="eu-west-1")
    with Stubber(ecr) as stubber:
        yield stubber


def read(stub: Stubber, uri: str = URI) -> str:
    return read_digest(uri, "0.36.0-lmi27.0.0-cu130", cast("ECRClient", stub.client))


@pytest.mark.parametrize("uri", [URI, f"{URI.rpartition(':')[0]}@sha256:{'2' * 64}"])
def test_the_registry_is_asked_for_the_tag(uri: str, stub: Stubber) -> None:
    stub.add_response("batch_get_image", {"images": [{"imageId": {"imageDigest": DIGEST}}], "failures": []}, ASKED)

    assert read(stub, uri) == DIGEST


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            {"failures": [{"failureCode": "ImageNotFound", "failureReason": "Requested image not found"}]},
            f"{URI}: SEA351: the registry has no such image\n"
            "  hint: plan with another engine_version; `seatrial images list --region REGION` lists them",
        ),
        (
            {"failures": [{"failureCode": "KmsError", "failureReason": "the key is disabled"}]},
            f"{URI}: SEA350: the digest can't be read: the key is disabled",
        ),
        ({}, f"{URI}: SEA350: the digest can't be read: the registry returned no digest"),
    ],
)
def test_an_answer_without_a_digest_is_a_problem(answer: Mapping[str, object], message: str, stub: Stubber) -> None:
    stub.add_response("batch_get_image", dict(answer))

    with pytest.raises(SeatrialError) as caught:
        read(stub)

    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("code", "message"),
    [
        (
            "RepositoryNotFoundException",
            f"{URI}: SEA351: the registry has no such repository\n"
            "  hint: plan with another engine_version; `seatrial images list --region REGION` lists them",
        ),
        (
            "AccessDeniedException",
            f"{URI}: SEA511: access is denied: BatchGetImage (AccessDeniedException: no)\n"
            "  hint: allow the caller to call BatchGetImage there, or use other credentials",
        ),
        (
            "ExpiredTokenException",
            f"{URI}: SEA503: the AWS credentials have expired (ExpiredTokenException: no)\n"
            "  hint: renew them (`aws sso login`, or AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN); "
            "check with `aws sts get-caller-identity`",
        ),
        ("ServerException", f"{URI}: SEA350: the digest can't be read: ServerException: no"),
    ],
)
def test_what_the_registry_refuses_is_told(code: str, message: str, stub: Stubber) -> None:
    stub.add_client_error("batch_get_image", code, "no")

    with pytest.raises(SeatrialError) as caught:
        read(stub)

    assert str(caught.value) == message


def test_without_credentials_the_message_says_how_to_get_some() -> None:
    class WithoutCredentials:
        def batch_get_image(self, **_asked: object) -> Mapping[str, list[Mapping[str, object]]]:
            raise NoCredentialsError

    with pytest.raises(SeatrialError) as caught:
        read_digest(URI, "0.36.0-lmi27.0.0-cu130", cast("ECRClient", WithoutCredentials()))

    assert str(caught.value) == (
        f"{URI}: SEA503: there are no AWS credentials: Unable to locate credentials\n"
        "  hint: log in (aws sso login), or set AWS_PROFILE or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    )


@pytest.mark.parametrize(
    ("uri", "address"),
    [
        (URI, ImageAddress("763104351884", "eu-west-1", "djl-inference")),
        (
            "111122223333.dkr.ecr.cn-north-1.amazonaws.com.cn/team/tgi@sha256:0",
            ImageAddress("111122223333", "cn-north-1", "team/tgi"),
        ),
    ],
)
def test_an_address_says_where_the_image_lies(uri: str, address: ImageAddress) -> None:
    assert read_address(uri) == address


def test_another_registry_is_not_asked() -> None:
    with pytest.raises(SeatrialError, match=r"docker\.io/vllm: SEA350: not an Amazon ECR address"):
        read_address("docker.io/vllm")
