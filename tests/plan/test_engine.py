from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.plan.engine import choose_engine

if TYPE_CHECKING:
    from tests.plan.conftest import Ask

OWN_IMAGE = "111122223333.dkr.ecr.eu-west-1.amazonaws.com/team/my-tgi:2025-cu124"


def test_lmi_is_the_engine_unless_the_spec_says_otherwise(ask: Ask) -> None:
    choice = choose_engine(ask(serving={}))

    assert (choice.engine.value, choice.version.value) == ("lmi", "0.36.0-lmi27.0.0")
    assert choice.engine.because == "LMI is developed on; TGI has been in maintenance mode since 2025-12-11."
    assert choice.version.because == (
        "The newest build whose behaviour is documented; how 0.36.0-lmi28.0.0, 0.38.0-lmi29.0.0 behave has not been "
        "read."
    )
    assert choice.ami_version.value == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert choice.ami_version.because == "Its driver is native to the image's CUDA (cu130)."


def test_the_user_may_overrule_to_tgi(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine": "tgi"}))

    assert (choice.engine.value, choice.engine.because) == ("tgi", "The spec fixes it.")
    assert (choice.version.value, choice.version.because) == ("3.3.6", "The newest build in the catalog.")


def test_an_undocumented_build_is_taken_with_a_warning(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine_version": "lmi28"}))

    assert choice.version.value == "0.36.0-lmi28.0.0"
    assert choice.warnings == ("How lmi 0.36.0-lmi28.0.0 behaves has not been read: its options may have changed.",)


def test_a_given_image_is_used_as_it_is(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"image": OWN_IMAGE}))

    image = choice.image.value
    assert (image.uri, image.repository, image.tag) == (OWN_IMAGE, "my-tgi", "2025-cu124")
    assert (choice.engine.value, choice.version.value) == ("tgi", "2025-cu124")
    assert choice.ami_version.value == "al2-ami-sagemaker-inference-gpu-3-1"
    assert choice.warnings == (f"The image {OWN_IMAGE} is used as it is: nothing about it was checked.",)


@pytest.mark.parametrize("serving", [{}, {"image": OWN_IMAGE}])
def test_a_hub_token_is_warned_of_because_it_can_be_read(serving: dict[str, object], ask: Ask) -> None:
    model = {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "hub_token_secret": "hub-token"}

    assert choose_engine(ask(model=model, serving=serving)).warnings[-1] == (
        "The hub token is resolved into the model's environment, where everyone who may call sagemaker:DescribeModel "
        "reads it; weights staged to S3 (model.s3_uri) need no token."
    )


def test_without_a_native_driver_the_service_chooses_the_ami(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine_version": "lmi15"}))

    assert choice.ami_version.value is None
    assert choice.ami_version.because == (
        "No AMI with a driver native to CUDA cu128 is known, so the service's default is used."
    )
