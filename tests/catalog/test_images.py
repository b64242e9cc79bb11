from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seatrial.catalog import images
from seatrial.errors import PlanError

if TYPE_CHECKING:
    from seatrial.catalog.engines import Family

LMI_27 = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TGI_3 = "/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124-ubuntu22.04"


def test_the_newest_documented_build_is_the_default() -> None:
    assert images.resolve("lmi", None, "us-east-1").uri == LMI_27
    assert images.resolve("tgi", None, "us-east-1").build.version == "3.3.6"


@pytest.mark.parametrize("version", ["0.36.0-lmi27.0.0", "0.36.0-lmi27.0.0-cu130", "lmi27", "27", "0.36.0"])
def test_an_lmi_build_has_several_names(version: str) -> None:
    assert images.resolve("lmi", version, "us-east-1").uri == LMI_27


def test_a_build_that_only_the_container_list_names() -> None:
    found = images.resolve("lmi", "lmi28", "eu-west-1")

    assert found.uri == "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi28.0.0-cu130"
    assert not found.build.documented


@pytest.mark.parametrize(
    ("region", "registry"),
    [
        ("us-east-1", "763104351884.dkr.ecr.us-east-1.amazonaws.com"),
        ("eu-south-1", "692866216735.dkr.ecr.eu-south-1.amazonaws.com"),
        ("cn-north-1", "727897471807.dkr.ecr.cn-north-1.amazonaws.com.cn"),
        ("us-iso-east-1", "886529160074.dkr.ecr.us-iso-east-1.c2s.ic.gov"),
        ("us-isob-east-1", "094389454867.dkr.ecr.us-isob-east-1.sc2s.sgov.gov"),
    ],
)
def test_a_region_has_its_registry(region: str, registry: str) -> None:
    assert images.resolve("tgi", "3.3.6", region).uri == registry + TGI_3


@pytest.mark.parametrize(
    ("family", "version", "ami"),
    [
        ("lmi", "lmi27", "al2023-ami-sagemaker-inference-gpu-4-1"),
        ("lmi", "lmi15", None),
        ("tgi", "3.3.6", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("tgi", "1.1.0", None),
    ],
)
def test_an_ami_is_named_only_when_its_driver_is_native(family: Family, version: str, ami: str | None) -> None:
    assert images.resolve(family, version, "us-east-1").ami_version == ami


@pytest.mark.parametrize(
    ("family", "version", "region", "message"),
    [
        (
            "tgi",
            "3.3.7",
            "us-east-1",
            "SEA303: no image is known for version 3.3.7 of tgi\n"
            "  hint: known: 3.3.6, 3.3.4, 3.2.3; or give the image's URI in serving.image",
        ),
        (
            "lmi",
            None,
            "us-easy-1",
            "SEA303: no image is known for 0.36.0-lmi27.0.0-cu130 in us-easy-1\n"
            "  hint: known: us-east-1, us-west-1, us-east-2; or give the image's URI in serving.image",
        ),
    ],
)
def test_the_unknown_names_the_nearest(family: Family, version: str | None, region: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        images.resolve(family, version, region)

    assert str(caught.value) == message


def test_a_region_whose_dns_suffix_nobody_verified_is_unknown() -> None:
    with pytest.raises(PlanError, match=re.escape("in us-isof-south-1")):
        images.resolve("lmi", None, "us-isof-south-1")


def test_every_tag_is_listed_once_with_its_source() -> None:
    tags = [build.tag for build in images.every()]

    assert len(tags) == len(set(tags))
    assert all(build.source and build.date for build in images.every())
