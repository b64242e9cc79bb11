from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from seatrial.planner.engine import choose_engine
from seatrial_base.errors import PlanError

if TYPE_CHECKING:
    from seatrial_base.findings import Finding
    from tests.planner.conftest import Ask

OWN_IMAGE = "111122223333.dkr.ecr.us-east-1.amazonaws.com/team/my-tgi:2025-cu124"

VLLM = (
    "vLLM needs no compilation, serves the most architectures, suits prompts and answers of varying length, and is "
    "the default of new LMI images."
)
TGI_STATUS = "TGI has been in maintenance mode since 2025-12-11: it gets small fixes only."


def test_lmi_is_the_engine_unless_the_spec_says_otherwise(ask: Ask) -> None:
    choice = choose_engine(ask(serving={}))

    assert (choice.engine.value, choice.version.value) == ("lmi", "0.36.0-lmi27.0.0")
    assert choice.engine.because == f"{VLLM} {TGI_STATUS}"
    assert choice.warnings == ()
    assert choice.version.because == (
        "The newest verified build. Newer, unverified: 0.36.0-lmi28.0.0, 0.38.0-lmi29.0.0."
    )
    assert choice.ami_version.value == "al2023-ami-sagemaker-inference-gpu-4-1"
    assert choice.ami_version.because == "Its driver supports the image's CUDA (cu130) natively."


def test_for_openai_clients_the_vllm_container_is_chosen_and_lmi_stays_a_choice(ask: Ask) -> None:
    workload = {"input_tokens": 512, "output_tokens": 128, "concurrency": 8, "api": "openai"}
    chosen = choose_engine(ask(workload=workload))
    assert (chosen.engine.value, chosen.image.value.repository, chosen.warnings) == ("vllm", "vllm", ())
    assert "unlike LMI it bounds no queue" in chosen.engine.because
    assert "OpenAI clients read as an empty stream" in chosen.engine.because

    kept = choose_engine(ask(workload=workload, serving={"engine": "lmi"}))
    assert kept.engine.value == "lmi"
    (warning,) = kept.warnings
    assert warning.startswith("SEA353: serving.engine fixes LMI with vLLM; Seatrial would take AWS's vLLM container.")
    assert "LMI streams JSON lines, which OpenAI clients read as an empty stream." in warning


def test_the_user_may_overrule_to_tgi(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine": "tgi"}))

    assert (choice.engine.value, choice.engine.because) == ("tgi", "The spec fixes it.")
    assert (choice.version.value, choice.version.because) == ("3.3.6", "The newest build in the catalog.")
    assert choice.warnings == (f"SEA353: serving.engine fixes TGI; Seatrial would take LMI with vLLM. {TGI_STATUS}",)


@pytest.mark.parametrize(
    ("backend", "version", "because"),
    [
        ("vllm-rolling", "0.36.0-lmi27.0.0", "The newest verified build. Newer, unverified: "),
        ("trtllm", "0.33.0-tensorrtllm0.21.0", "The newest build in the catalog."),
        ("neuronx", "0.29.0-neuronx-sdk2.19.1", "The newest build in the catalog."),
        ("deepspeed", "0.27.0-deepspeed0.12.6", "The newest build in the catalog."),
        ("lmi-dist", "0.32.0-lmi14.0.0", "The last build with lmi-dist."),
    ],
)
def test_a_backend_has_the_images_that_run_it(backend: str, version: str, because: str, ask: Ask) -> None:
    choice = choose_engine(ask(serving={"backend": backend}))

    assert (choice.engine.value, choice.version.value) == ("lmi", version)
    assert choice.engine.because == "The spec fixes serving.backend, which is one of LMI's."
    assert choice.version.because.startswith(because)


def test_a_backend_that_is_frozen_is_taken_with_a_warning(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine": "lmi", "backend": "trtllm"}))

    assert choice.engine.because == "The spec fixes it."
    assert choice.warnings == (
        "SEA353: serving.backend fixes LMI with TensorRT-LLM; Seatrial would take LMI with vLLM. LMI's TensorRT-LLM "
        "images are frozen: the newest is DJL 0.33 (LMI 15). Advantage: The backend guide recommends TensorRT-LLM "
        "for prompts and answers of similar length.",
    )


def test_a_backend_of_lmi_is_refused_for_tgi(ask: Ask) -> None:
    with pytest.raises(PlanError) as caught:
        choose_engine(ask(serving={"engine": "tgi", "backend": "trtllm"}))

    assert str(caught.value) == (
        "chat.yaml:10: serving.backend: SEA108: serving.backend trtllm belongs to LMI, but serving.engine is tgi\n"
        "  hint: remove the backend, or serve with lmi"
    )


def test_a_backend_and_a_version_before_lmi_10_name_the_deepspeed_image(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"backend": "lmi-dist", "engine_version": "0.26.0"}))

    assert choice.image.value.tag == "0.26.0-deepspeed0.12.6-cu121"


@pytest.mark.parametrize(
    ("engine", "image"),
    [
        ("vllm", "vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker"),
        ("sglang", "sglang:0.5.20-gpu-py312-cu130-ubuntu24.04-sagemaker"),
    ],
)
def test_an_engine_that_is_never_chosen_by_itself_is_taken_when_it_is_asked_for(
    engine: str, image: str, ask: Ask
) -> None:
    choice = choose_engine(ask(serving={"engine": engine}))

    assert (choice.engine.value, choice.engine.because) == (engine, "The spec fixes it.")
    assert choice.image.value.uri == f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{image}"
    assert choice.warnings == ()


@pytest.mark.parametrize(
    ("image", "engine"),
    [
        ("djl-inference:0.36.0-lmi27.0.0-cu130", "lmi"),
        ("djl-inference:0.33.0-tensorrtllm0.21.0-cu128", "lmi"),
        ("huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124-ubuntu22.04", "tgi"),
        ("huggingface-vllm:0.29.0-transformers5.15.0-gpu-py312-cu130-ubuntu24.04-v1.0", "vllm"),
        ("sglang:server-sagemaker-cuda-v1.4", "sglang"),
        ("our-own:1", "lmi"),
    ],
)
def test_an_image_tells_its_engine_by_its_name(image: str, engine: str, ask: Ask) -> None:
    choice = choose_engine(ask(serving={"image": f"111122223333.dkr.ecr.us-east-1.amazonaws.com/{image}"}))

    assert choice.engine.value == engine


def test_the_address_of_a_given_image_is_warned_of(ask: Ask) -> None:
    image = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.27.0-lmi10-cu124"
    assert "LMI 10 is of DJL 0.28.0" in choose_engine(ask(serving={"image": image})).warnings[1]


def test_on_neuron_alone_the_image_is_for_neuron(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"instance_types": ["ml.inf2.xlarge"]}))

    assert (choice.engine.value, choice.version.value) == ("vllm", "0.4.5")
    assert choice.image.value.repository == "huggingface-vllm-inference-neuronx"
    assert choice.ami_version.value == "al2-ami-sagemaker-inference-neuron-2"
    assert (choice.facts.id, choice.warnings) == ("neuron", ())


@pytest.mark.parametrize("asked", [{"engine": "lmi"}, {"backend": "neuronx"}])
def test_lmi_on_neuron_has_its_last_image(asked: dict[str, object], ask: Ask) -> None:
    choice = choose_engine(ask(serving={"instance_types": ["ml.inf2.xlarge"], **asked}))

    assert choice.image.value.tag == "0.29.0-neuronx-sdk2.19.1"
    assert (choice.ami_version.value, choice.ami_version.because) == (
        None,
        "SageMaker's default: the image is for AWS Neuron and needs no CUDA.",
    )
    assert any("LMI's Neuron images are frozen: the newest is DJL 0.29 (LMI 11)." in each for each in choice.warnings)


def test_an_undocumented_build_is_taken_with_a_warning(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine_version": "lmi28"}))

    assert choice.version.value == "0.36.0-lmi28.0.0"
    assert choice.warnings == ("lmi 0.36.0-lmi28.0.0 is unverified: its options may have changed.",)


def test_a_given_image_is_used_as_it_is(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"image": OWN_IMAGE}))

    image = choice.image.value
    assert (image.uri, image.repository, image.tag) == (OWN_IMAGE, "my-tgi", "2025-cu124")
    assert (choice.engine.value, choice.version.value) == ("tgi", "2025-cu124")
    assert choice.ami_version.value == "al2-ami-sagemaker-inference-gpu-3-1"
    assert choice.engine.because == "From the name of the image in the spec."
    assert choice.warnings == (
        f"SEA353: serving.image fixes TGI; Seatrial would take LMI with vLLM. {TGI_STATUS}",
        f"The image {OWN_IMAGE} is used as given, without checks.",
    )


@pytest.mark.parametrize(
    ("image", "tag", "version", "because"),
    [
        ("djl:0.36-cu130@sha256:" + "a" * 64, "0.36-cu130", "0.36-cu130", "tag"),
        ("djl@sha256:" + "a" * 64, "", "sha256:" + "a" * 64, "digest"),
    ],
)
def test_a_given_digest_is_no_tag(image: str, tag: str, version: str, because: str, ask: Ask) -> None:
    choice = choose_engine(ask(serving={"image": f"111122223333.dkr.ecr.us-east-1.amazonaws.com/{image}"}))

    assert (choice.image.value.repository, choice.image.value.tag, choice.version.value) == ("djl", tag, version)
    assert choice.version.because == f"The {because} of the image in the spec."


@pytest.mark.parametrize("serving", [{}, {"image": OWN_IMAGE}])
def test_a_hub_token_is_warned_of_because_it_can_be_read(serving: dict[str, object], ask: Ask) -> None:
    model = {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "hub_token_secret": "hub-token"}

    assert choose_engine(ask(model=model, serving=serving)).warnings[-1] == (
        "The hub token is readable with sagemaker:DescribeModel. Weights staged to S3 (model.s3_uri) need no token."
    )


def test_without_a_native_driver_the_service_chooses_the_ami(ask: Ask) -> None:
    choice = choose_engine(ask(serving={"engine_version": "lmi15"}))

    assert choice.ami_version.value is None
    assert choice.ami_version.because == ("SageMaker's default: no AMI is known to support CUDA cu128.")


ADAPTERS = {
    "adapters": [{"name": "sql", "s3_uri": "s3://adapters/sql.tar.gz"}],
    "overrides": {"lora": {"max_rank": 16, "max_adapters": 2}},
    "instance_types": ["ml.g6e.2xlarge"],
}
REFUSED = (("SEA132", "serving.adapters"),)
VLLM_IMAGES = "763104351884.dkr.ecr.us-east-1.amazonaws.com/vllm:"


@pytest.mark.parametrize(
    ("serving", "refused"),
    [
        ({"engine": "lmi"}, ()),
        ({"engine": "vllm"}, ()),
        ({"engine": "vllm", "image": f"{VLLM_IMAGES}0.12.0-gpu-py312"}, ()),
        ({"engine": "vllm", "image": f"{VLLM_IMAGES}0.11.2-gpu-py312"}, REFUSED),
        ({"engine": "tgi"}, REFUSED),
        ({"engine": "sglang"}, REFUSED),
        ({"engine": "lmi", "backend": "trtllm"}, REFUSED),
    ],
)
def test_adapters_need_an_engine_that_loads_them_while_it_runs(
    ask: Ask, serving: dict[str, object], refused: tuple[tuple[str, str], ...]
) -> None:
    loaded = ask(serving={**ADAPTERS, **serving})
    problems: tuple[Finding, ...] = ()
    try:
        choose_engine(loaded)
    except PlanError as error:
        problems = tuple(error.problems)
    assert tuple((problem.rule, problem.field) for problem in problems) == refused
