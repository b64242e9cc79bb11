from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from seatrial_base.catalog import images
from seatrial_base.catalog.images import IMAGES, ImageChange, Update, find_image, resolve_image, update_of
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from seatrial_base.catalog.images import Flavour, ImageFamily

LMI_27 = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
TGI_3 = "/huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124-ubuntu22.04"


def test_the_newest_documented_build_is_the_default() -> None:
    assert resolve_image("lmi", None, "us-east-1").uri == LMI_27
    assert resolve_image("tgi", None, "us-east-1").build.version == "3.3.6"


@pytest.mark.parametrize("version", ["0.36.0-lmi27.0.0", "0.36.0-lmi27.0.0-cu130", "lmi27", "27", "0.36.0"])
def test_an_lmi_build_has_several_names(version: str) -> None:
    assert resolve_image("lmi", version, "us-east-1").uri == LMI_27


def test_a_build_that_only_the_container_list_names() -> None:
    found = resolve_image("lmi", "lmi28", "eu-west-1")

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
    assert resolve_image("tgi", "3.3.6", region).uri == registry + TGI_3


@pytest.mark.parametrize(
    ("family", "version", "ami"),
    [
        ("lmi", "lmi27", "al2023-ami-sagemaker-inference-gpu-4-1"),
        ("lmi", "lmi15", None),
        ("tgi", "3.3.6", "al2-ami-sagemaker-inference-gpu-3-1"),
        ("tgi", "1.1.0", None),
    ],
)
def test_an_ami_is_named_only_when_its_driver_is_native(family: ImageFamily, version: str, ami: str | None) -> None:
    assert resolve_image(family, version, "us-east-1").ami_version == ami


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
def test_the_unknown_names_the_nearest(family: ImageFamily, version: str | None, region: str, message: str) -> None:
    with pytest.raises(PlanError) as caught:
        resolve_image(family, version, region)

    assert str(caught.value) == message


def test_a_region_whose_dns_suffix_nobody_verified_is_unknown() -> None:
    with pytest.raises(PlanError, match=re.escape("in us-isof-south-1")):
        resolve_image("lmi", None, "us-isof-south-1")


@pytest.mark.parametrize(
    ("family", "flavours", "version", "tag"),
    [
        ("lmi", None, "0.27.0", "0.27.0-deepspeed0.12.6-cu121"),  # the image of vLLM and lmi-dist before LMI 10
        ("lmi", None, "lmi8", "0.26.0-deepspeed0.12.6-cu121"),
        ("lmi", ("trtllm",), None, "0.33.0-tensorrtllm0.21.0-cu128"),
        ("lmi", ("trtllm",), "lmi8", "0.26.0-tensorrtllm0.7.1-cu122"),
        ("lmi", ("neuronx",), None, "0.29.0-neuronx-sdk2.19.1"),
        ("lmi", ("fastertransformer",), "0.24.0", "0.24.0-fastertransformer5.3.0-cu118"),
        ("tgi", ("neuronx",), None, "2.7.0-optimum3.3.6-neuronx-py310-ubuntu22.04"),
        ("vllm", None, "0.30.0", "0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker"),
        ("vllm", ("server",), "2.6", "server-sagemaker-cuda-v2.6"),
        ("vllm", ("neuronx",), "0.4.4", "0.11.0-optimum0.4.4-neuronx-py310-sdk2.26.1-ubuntu22.04"),
        ("sglang", None, None, "0.5.20-gpu-py312-cu130-ubuntu24.04-sagemaker"),
    ],
)
def test_a_line_has_its_own_builds(
    family: ImageFamily, flavours: tuple[Flavour, ...] | None, version: str | None, tag: str
) -> None:
    assert resolve_image(family, version, "us-east-1", flavours=flavours).build.tag == tag


def test_only_accepted_builds_are_taken_when_no_version_is_given() -> None:
    found = resolve_image("lmi", None, "us-east-1", accepted=lambda build: (build.lmi or 0) <= 14)

    assert found.build.version == "0.32.0-lmi14.0.0"


def test_an_image_is_found_by_its_repository_and_tag() -> None:
    found = find_image("djl-inference", "0.36.0-lmi27.0.0-cu130")

    assert found is not None
    assert (found.lmi, found.bundles, found.cuda) == (27, "vLLM 0.23.1", "cu130")
    assert find_image("djl-inference", "latest") is None


def test_an_unknown_region_is_refused_with_the_nearest() -> None:
    with pytest.raises(PlanError) as caught:
        images.check_region("eu-west-9")

    assert str(caught.value) == (
        "SEA303: no image is known for eu-west-9\n"
        "  hint: known: eu-west-3, eu-west-2, eu-west-1; or give the image's URI in serving.image"
    )


def test_what_a_newer_build_brings() -> None:
    found = update_of(resolve_image("lmi", "lmi16", "us-east-1").build, "us-east-1")

    assert [build.lmi for build in found.newer] == list(range(17, 28))
    assert [build.lmi for build in found.unread] == [28, 29]
    assert found.changes == (
        ImageChange("LMI", "16", "27"),
        ImageChange("version", "0.34.0-lmi16.0.0", "0.36.0-lmi27.0.0"),
        ImageChange("vLLM", "0.10.2", "0.23.1"),
        ImageChange("CUDA", "12.8", "13.0"),
        ImageChange("InferenceAmiVersion", None, "al2023-ami-sagemaker-inference-gpu-4-1"),
    )


def test_what_is_not_listed_for_the_region_is_no_update() -> None:
    found = update_of(resolve_image("lmi", "lmi16", "us-gov-west-1").build, "us-gov-west-1")

    assert ([build.lmi for build in found.newer], [build.lmi for build in found.unread]) == ([17, 27], [29])


@pytest.mark.parametrize(("flavour", "version"), [("trtllm", "0.33.0"), ("neuronx", "0.29.0"), ("deepspeed", "0.27.0")])
def test_a_frozen_line_has_no_updates(flavour: Flavour, version: str) -> None:
    build = resolve_image("lmi", version, "us-east-1", flavours=(flavour,)).build

    assert update_of(build, "us-east-1") == Update(build, newer=(), unread=(), changes=())


def test_every_image_is_listed_once_with_its_source() -> None:
    places = [(build.repository, build.tag) for build in IMAGES.rows]

    assert len(places) == len(set(places))
    assert all(build.source and build.date for build in IMAGES.rows)
