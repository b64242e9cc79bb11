"""The table of rules: what is chosen for a case, why, and what is said of another choice."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest

from seatrial.catalog import images
from seatrial.catalog.engines import Family
from seatrial.plan.engine import Case, Facts, automatic, best_option, opinion, options, reasons, rules, status_of, why
from seatrial.spec.engine_options import Backend

GPU: Facts = {"accelerators": "gpu", "architecture": "llama"}
NEURON: Facts = {"accelerators": "neuron", "architecture": "llama"}
VLLM = (
    "vLLM needs no compilation, serves the most architectures, suits prompts and answers of varying length, and is "
    "the default of new LMI images."
)
TGI_STATUS = "TGI has been in maintenance mode since 2025-12-11: it gets small fixes only."
TRTLLM_STATUS = "LMI's TensorRT-LLM images are frozen: the newest is DJL 0.33 (LMI 15)."
TRTLLM_EVEN = (
    "Advantage: The backend guide recommends TensorRT-LLM where all prompts and answers have much the same length."
)


@pytest.mark.parametrize(
    ("facts", "chosen", "because"),
    [
        (GPU, "lmi-vllm", f"{VLLM} {TGI_STATUS}"),
        (
            {"accelerators": "both"},
            "lmi-vllm",
            f"{VLLM} {TGI_STATUS} LMI's Neuron images are frozen: the newest is DJL 0.29 (LMI 11).",
        ),
        (
            GPU | {"quantization": "awq"},
            "lmi-vllm",
            f"{VLLM} It reads awq from the checkpoint and takes its faster Marlin kernels where the GPU has them. "
            f"{TGI_STATUS}",
        ),
        (
            GPU | {"quantization": "fp8"},
            "lmi-vllm",
            f"{VLLM} It quantizes to FP8 when it loads the model. {TGI_STATUS}",
        ),
        (GPU | {"speculation": "eagle3"}, "lmi-vllm", VLLM),  # TGI is excluded: nobody need hear of it
        (
            NEURON,
            "lmi-neuronx",
            "ml.inf2.xlarge has AWS Neuron, which of LMI's backends Transformers-NeuronX serves. "
            "The image of LMI with vLLM is for NVIDIA GPUs, and ml.inf2.xlarge has AWS Neuron. "
            "The image of TGI is for NVIDIA GPUs, and ml.inf2.xlarge has AWS Neuron.",
        ),
        ({"accelerators": "gpu", "architecture": "t5"}, "tgi", "Of LMI's backends only TensorRT-LLM serves t5."),
    ],
)
def test_the_first_option_that_nothing_excludes_is_chosen(facts: Facts, chosen: str, because: str) -> None:
    case = Case(facts, "ml.inf2.xlarge")
    option = best_option(case)

    assert (option.name, why(case, option)) == (chosen, because)


@pytest.mark.parametrize(
    ("option", "facts", "warning"),
    [
        ("lmi-vllm", GPU, None),
        ("tgi", GPU, f"fixes TGI; Seatrial would take LMI with vLLM. {TGI_STATUS}"),
        (
            "tgi",
            GPU | {"speculation": "eagle3"},
            "fixes TGI; Seatrial would take LMI with vLLM. TGI supports n-grams and Medusa heads, not eagle3. "
            f"{TGI_STATUS}",
        ),
        (
            "tgi",
            {"accelerators": "gpu", "architecture": "gpt_oss", "quantization": "mxfp4"},
            "fixes TGI; Seatrial would take LMI with vLLM. TGI does not support mxfp4 quantization. gpt_oss is not "
            f"among the models that TGI has code of its own for. {TGI_STATUS}",
        ),
        (
            "lmi-trtllm",
            GPU,
            f"fixes LMI with TensorRT-LLM; Seatrial would take LMI with vLLM. {TRTLLM_STATUS} {TRTLLM_EVEN}",
        ),
        (
            "lmi-trtllm",
            {"accelerators": "gpu"},  # of a shape that is written in the spec, no architecture is known
            f"fixes LMI with TensorRT-LLM; Seatrial would take LMI with vLLM. {TRTLLM_STATUS} {TRTLLM_EVEN}",
        ),
        (
            "lmi-trtllm",
            {"accelerators": "gpu", "architecture": "qwen3", "quantization": "awq", "speculation": "ngram"},
            "fixes LMI with TensorRT-LLM; Seatrial would take LMI with vLLM. LMI does not test compiling qwen3 for "
            "TensorRT-LLM at start: it would have to be compiled by hand. TensorRT-LLM quantizes to AWQ at start for "
            "Llama and Mistral alone. LMI with TensorRT-LLM has no speculative decoding. "
            f"{TRTLLM_STATUS} {TRTLLM_EVEN}",
        ),
        (
            "lmi-trtllm",
            GPU | {"quantization": "gptq"},
            "fixes LMI with TensorRT-LLM; Seatrial would take LMI with vLLM. TensorRT-LLM in LMI takes SmoothQuant, "
            f"AWQ and FP8, not gptq. {TRTLLM_STATUS} {TRTLLM_EVEN}",
        ),
        (
            "lmi-dist",
            GPU | {"speculation": "ngram"},
            "fixes LMI with lmi-dist; Seatrial would take LMI with vLLM. LMI with lmi-dist supports draft models "
            "only, not ngram. lmi-dist has not been updated since LMI 12 and removed in LMI 15.",
        ),
        (
            "lmi-deepspeed",
            GPU | {"quantization": "awq"},
            "fixes LMI with DeepSpeed; Seatrial would take LMI with vLLM. LMI with DeepSpeed has no awq. LMI's "
            "DeepSpeed backend is gone: its last image is DJL 0.27 (LMI 9).",
        ),
        (
            "lmi-python",
            GPU,
            "fixes LMI with Hugging Face Accelerate; Seatrial would take LMI with vLLM. Hugging Face Accelerate is in "
            "maintenance mode, slower, and meant for models that no other backend serves.",
        ),
        (
            "lmi-neuronx",
            GPU,
            "fixes LMI with Transformers-NeuronX; Seatrial would take LMI with vLLM. The image of LMI with "
            "Transformers-NeuronX is for AWS Neuron, and ml.g5.2xlarge has NVIDIA GPUs. LMI's Neuron images are "
            "frozen: the newest is DJL 0.29 (LMI 11).",
        ),
        (
            "lmi-vllm",
            NEURON,
            "fixes LMI with vLLM; Seatrial would take LMI with Transformers-NeuronX. The image of LMI with vLLM is for "
            f"NVIDIA GPUs, and ml.g5.2xlarge has AWS Neuron. Advantage: {VLLM}",
        ),
    ],
)
def test_a_choice_of_the_users_is_taken_with_what_speaks_against_it(
    option: str, facts: Facts, warning: str | None
) -> None:
    taken = next(each for each in options() if each.name == option)
    expected = () if warning is None else (f"SEA353: serving.backend {warning}",)

    assert opinion(Case(facts, "ml.g5.2xlarge"), taken, "serving.backend") == expected


def test_what_is_chosen_with_a_drawback_has_it_told_without_a_rule_of_its_own() -> None:
    case = Case(NEURON)

    assert opinion(case, best_option(case), "") == ("LMI's Neuron images are frozen: the newest is DJL 0.29 (LMI 11).",)


def test_when_everything_is_excluded_the_first_is_taken_and_warned_of() -> None:
    case = Case(NEURON | {"quantization": "awq"}, "ml.inf2.xlarge")
    option = best_option(case)

    assert option.name == "lmi-vllm"
    assert opinion(case, option, "") == (
        "The image of LMI with vLLM is for NVIDIA GPUs, and ml.inf2.xlarge has AWS Neuron.",
    )


def test_every_backend_of_a_spec_has_its_option() -> None:
    named = {backend for option in options() for backend in option.backends}

    assert named == set(get_args(Backend))
    assert [option.name for option in automatic()] == ["lmi-vllm", "tgi", "lmi-neuronx"]
    assert {option.engine for option in options()} == set(get_args(Family))


def test_every_rule_speaks_of_options_that_exist_and_has_a_source() -> None:
    names = {option.name for option in options()}

    assert len({rule.id for rule in rules()}) == len(rules())
    for rule in rules():
        assert names.issuperset(rule.options), rule.id
        assert rule.source, rule.id
        assert rule.date, rule.id


def test_every_option_has_images() -> None:
    for option in options():
        found = images.resolve(option.engine, None, "us-east-1", flavours=option.flavours)
        assert found.build.flavour in option.flavours


def test_every_sentence_can_be_filled_in() -> None:
    case = Case({"accelerators": "gpu", "architecture": "t5", "quantization": "mxfp4", "speculation": "medusa"})

    for option in options():
        for sentence in reasons(case, option, "for", "against", "excludes"):
            assert sentence.endswith(".")
            assert "{" not in sentence


@pytest.mark.parametrize(
    ("engine", "flavour", "status"),
    [("tgi", "cuda", TGI_STATUS), ("lmi", "trtllm", TRTLLM_STATUS), ("lmi", "vllm", None), ("sglang", "cuda", None)],
)
def test_a_line_of_images_has_its_status(engine: str, flavour: str, status: str | None) -> None:
    assert status_of(engine, flavour) == status


def test_the_page_has_every_rule() -> None:
    page = (Path(__file__).parents[2] / "docs" / "engines.md").read_text(encoding="utf-8")

    for rule in rules():
        assert f"| {rule.because} | {rule.source}, {rule.date} |" in page, rule.id
