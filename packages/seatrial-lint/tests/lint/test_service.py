"""What SageMaker makes of a model definition."""

from __future__ import annotations

import json

import pytest

from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from tests.lint.cases import LMI, TGI, said

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
CU130 = "djl-inference:0.36.0-lmi27.0.0-cu130"
CU129 = "djl-inference:0.36.0-lmi24.0.0-cu129"
NEURON = "djl-inference:0.29.0-neuronx-sdk2.19.1"
MOUNTED = {"HF_MODEL_ID": "/opt/ml/model", "OPTION_MAX_ROLLING_BATCH_SIZE": "4"}
HUB = {"HF_MODEL_ID": "org/model", "HF_REVISION": "abc", "OPTION_MAX_ROLLING_BATCH_SIZE": "4"}
GATED = "s3://jumpstart-private-cache-prod-us-east-1/llama/"


def model(image: str = CU129, env: dict[str, str] | None = None, *, isolated: bool = False, **container: object) -> str:
    primary = {"Image": f"{REGISTRY}/{image}", "Environment": MOUNTED if env is None else env, **container}
    return json.dumps({"ModelName": "m", "PrimaryContainer": primary, "EnableNetworkIsolation": isolated}, indent=1)


def weights(uri: str, **more: object) -> dict[str, object]:
    return {"S3DataSource": {"S3Uri": uri, "S3DataType": "S3Prefix", "CompressionType": "None", **more}}


def config(**variant: object) -> str:
    return json.dumps({"EndpointConfigName": "c", "ProductionVariants": [{"ModelName": "m", **variant}]})


def together(rule: str, *texts: str) -> list[str]:
    sources = [source for number, text in enumerate(texts) for source in read_content(text.encode(), f"{number}.json")]
    return [
        f"{one.place.file}:{one.place.line}: {one.message}"
        for one in lint_sources(sources).findings
        if one.rule == rule
    ]


class TestAmi:
    OLD = "al2-ami-sagemaker-inference-gpu-3-1"

    def test_cuda_13_needs_an_ami_with_its_driver(self) -> None:
        assert said("SEA324", model(CU130), name="m.json", given=Given(ami_version=self.OLD)) == [
            "4: Image: error: CUDA 13.0 of the image needs a newer driver than al2-ami-sagemaker-inference-gpu-3-1 "
            "has; it fails without a log | write InferenceAmiVersion al2023-ami-sagemaker-inference-gpu-4-1"
        ]
        new = Given(ami_version="al2023-ami-sagemaker-inference-gpu-4-1")
        assert said("SEA324", model(CU130), name="m.json", given=new) == []
        assert said("SEA324", model(CU129), name="m.json", given=Given(ami_version=self.OLD)) == []

    def test_the_endpoint_config_of_the_model_tells_that_none_is_chosen(self) -> None:
        assert together("SEA324", model(CU130), config(InstanceType="ml.g5.2xlarge")) == [
            "0.json:4: CUDA 13.0 of the image needs a newer driver than the default AMI has; it fails without a log"
        ]

    def test_without_an_endpoint_config_nothing_is_told(self) -> None:
        assert together("SEA324", model(CU130)) == []


@pytest.mark.parametrize(
    ("image", "instance", "expected"),
    [
        (NEURON, "ml.g5.2xlarge", "the image is for AWS Neuron, but ml.g5.2xlarge has NVIDIA A10G"),
        (NEURON, "ml.inf2.xlarge", ""),
        (CU129, "ml.inf2.xlarge", "the image is for NVIDIA GPUs, but ml.inf2.xlarge has AWS Inferentia2"),
        (CU129, "ml.g5.2xlarge", ""),
    ],
)
def test_an_image_runs_on_its_own_accelerators(image: str, instance: str, expected: str) -> None:
    found = together("SEA325", model(image), config(InstanceType=instance))
    assert found == ([f"0.json:4: {expected}"] if expected else [])


def test_an_isolated_container_fetches_nothing() -> None:
    assert said("SEA329", model(env=HUB, isolated=True), name="m.json") == [
        "6: HF_MODEL_ID: error: with network isolation, the container can't download org/model | stage the weights "
        "(seatrial stage), set ModelDataSource, and write /opt/ml/model here"
    ]
    assert said("SEA329", model(env=MOUNTED, isolated=True), name="m.json") == []
    assert said("SEA329", model(env=HUB), name="m.json") == []


class TestSecrets:
    TOKEN = "hf_" + "a1B2" * 8

    def test_a_token_is_told_and_never_repeated(self) -> None:
        report = lint_sources(read_content(f"{TGI}HF_TOKEN={self.TOKEN}\nHF_TOKEN={self.TOKEN}x\n".encode(), "a.env"))
        assert [str(one) for one in report.findings if one.rule == "SEA330"] == [
            f"a.env:{line}: HF_TOKEN: SEA330: a credential is in plain text, readable with "
            f"sagemaker:DescribeModel\n  hint: revoke it and remove it; use Secrets Manager: model.hub_token_secret"
            for line in (4, 5)
        ]
        assert [one.message for one in report.findings if one.rule == "SEA320"] == [
            "duplicate on line 5, which takes precedence: (hidden)"
        ]
        assert self.TOKEN not in repr(report)

    @pytest.mark.parametrize("value", ["{{resolve:secretsmanager:hub}}", "arn:aws:secretsmanager:x", "${HF_TOKEN}", ""])
    def test_a_reference_passes(self, value: str) -> None:
        assert said("SEA330", f"{TGI}HF_TOKEN={value}", name="a.env") == []

    @pytest.mark.parametrize(
        ("key", "value"),
        [
            ("DB_PASSWD", "swordfish"),
            ("API_KEY", "sk-proj-" + "a1B2" * 8),
            ("SM_VLLM_HF_OVERRIDES", '{"password": "swordfish"}'),
            ("PROXY", "https://user:swordfish@proxy:8080"),
            (TOKEN, "1"),
        ],
    )
    def test_lint_knows_what_specs_refuse(self, key: str, value: str) -> None:
        report = lint_sources(read_content(f"{TGI}{key}={value}\n".encode(), "a.env"))
        assert [one.rule for one in report.findings if one.place.line == 4 and one.rule == "SEA330"] == ["SEA330"]
        assert not any(secret in repr(report) for secret in ("swordfish", "a1B2" * 8))

    @pytest.mark.parametrize("entry", ["PAD_TOKEN=</s>", "API_KEY=EMPTY", "MAX_TOKENS=512", "HF_TOKEN={{token}}"])
    def test_what_specs_take_lint_takes_too(self, entry: str) -> None:
        assert said("SEA330", f"{TGI}{entry}", name="a.env") == []

    @pytest.mark.parametrize("value", [f"<{TOKEN}>", f"${{HF_TOKEN:-{TOKEN}}}"])
    def test_a_token_within_what_looks_like_a_reference_is_told(self, value: str) -> None:
        assert len(said("SEA330", f"{TGI}HF_TOKEN={value}", name="a.env")) == 1


class TestWeights:
    def test_gated_weights_need_an_accepted_eula(self) -> None:
        assert said("SEA331", model(ModelDataSource=weights(GATED)), name="m.json") == [
            "11: ModelDataSource.S3DataSource.S3Uri: error: these weights are gated, but no ModelAccessConfig accepts "
            "their EULA | read the EULA, then set ModelAccessConfig: {AcceptEula: true} next to S3Uri"
        ]
        accepted = weights(GATED, ModelAccessConfig={"AcceptEula": True})
        assert said("SEA331", model(ModelDataSource=accepted), name="m.json") == []
        assert said("SEA331", model(ModelDataSource=weights("s3://mine/llama/")), name="m.json") == []

    def test_a_declined_eula_is_an_error(self) -> None:
        declined = weights("s3://mine/llama/", ModelAccessConfig={"AcceptEula": False})
        assert [text.partition(": ")[2] for text in said("SEA331", model(ModelDataSource=declined), name="m.json")] == [
            "ModelDataSource.S3DataSource.ModelAccessConfig.AcceptEula: error: the EULA is declined: SageMaker "
            "refuses the weights | read it, then set ModelAccessConfig.AcceptEula: true"
        ]

    def test_a_prefix_ends_in_a_slash(self) -> None:
        assert said("SEA338", model(ModelDataSource=weights("s3://bucket/llama")), name="m.json") == [
            "11: ModelDataSource.S3DataSource.S3Uri: error: an S3Prefix must end in a slash | write s3://bucket/llama/"
        ]
        assert said("SEA338", model(ModelDataSource=weights("s3://bucket/llama/")), name="m.json") == []


class TestTwoModels:
    def test_a_hub_id_beside_packaged_weights(self) -> None:
        assert together("SEA335", model(env=HUB, ModelDataUrl="s3://bucket/model.tar.gz")) == [
            "0.json:6: LMI loads org/model as a second model besides the one in s3://bucket/model.tar.gz"
        ]
        assert together("SEA335", model(env=MOUNTED, ModelDataUrl="s3://bucket/model.tar.gz")) == []
        assert together("SEA335", model(env=HUB)) == []

    def test_a_hub_id_beside_a_packaged_file(self) -> None:
        sources = [
            *read_content(LMI.encode(), "here/container.env"),
            *read_content(b"option.model_id=org/other\noption.max_rolling_batch_size=65\n", "here/serving.properties"),
        ]
        found = lint_sources(sources).findings
        assert [one.message for one in found if one.rule == "SEA335"] == [
            "LMI loads org/model as a second model besides the one in here/serving.properties"
        ]
        assert [str(one) for one in found if one.rule == "SEA343"] == [
            "here/container.env:3: OPTION_MAX_ROLLING_BATCH_SIZE: SEA343: warning: here/serving.properties has 65 on "
            "line 2, which takes precedence\n  hint: keep one of them"
        ]

    def test_only_serving_properties_is_read_by_the_container(self) -> None:
        other = b"option.model_id=org/other\noption.max_rolling_batch_size=65\n"
        sources = [*read_content(LMI.encode(), "here/c.env"), *read_content(other, "here/old.properties")]
        assert [one for one in lint_sources(sources).findings if one.rule in ("SEA335", "SEA343")] == []

    def test_files_of_different_folders_are_different_models(self) -> None:
        sources = [
            *read_content(LMI.encode(), "a/c.env"),
            *read_content(b"option.model_id=o/o\n", "b/serving.properties"),
        ]
        assert [one for one in lint_sources(sources).findings if one.rule in ("SEA335", "SEA343")] == []


class TestEnvironmentLimits:
    def test_1024_characters_pass_and_1025_do_not(self) -> None:
        assert said("SEA302", f"{TGI}X={'a' * 1024}", name="a.env") == []
        assert said("SEA302", f"{TGI}X={'a' * 1025}", name="a.env") == [
            "4: X: error: the value has 1025 characters; the limit is 1024 | move the option to serving.properties"
        ]

    def test_100_variables_pass_and_101_do_not(self) -> None:
        assert said("SEA302", TGI + "".join(f"X{i}=\n" for i in range(97)), name="a.env") == []
        assert said("SEA302", TGI + "".join(f"X{i}=\n" for i in range(98)), name="a.env") == [
            "1: error: 101 environment variables exceed 100 | remove variables, or move options to serving.properties"
        ]

    def test_32_kib_pass_and_a_byte_more_does_not(self) -> None:
        full = "".join(f"X{i:02}={'a' * 1021}\n" for i in range(32))
        assert said("SEA302", full, name="a.env") == []
        assert [text.partition(" |")[0] for text in said("SEA302", f"{full}Y=\n", name="a.env")] == [
            "1: error: the environment's 32769 bytes exceed 32768"
        ]


class TestStart:
    """Weights that an engine can't load (cases of the catalog's `engine_limits.json`)."""

    CODER = "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8"
    OLD_TGI = "huggingface-pytorch-tgi-inference:2.0.1-tgi1.1.0-gpu-py39-cu118-ubuntu20.04"
    NEW_TGI = "huggingface-pytorch-tgi-inference:2.3.0-tgi2.2.0-gpu-py310-cu121-ubuntu22.04-v2.0"

    @pytest.mark.parametrize(
        ("version", "instance_type", "more", "found"),
        [
            ("0.26.0", "ml.p5.48xlarge", {}, 1),
            ("0.30.0", "ml.p5.48xlarge", {}, 0),  # its blocks are halved to 64
            ("0.30.0", "ml.p4de.24xlarge", {}, 1),  # not without FP8 arithmetic
            ("0.26.0", "ml.p4de.24xlarge", {"SM_VLLM_ENABLE_EXPERT_PARALLEL": "true"}, 0),
            ("0.26.0", "ml.p4de.24xlarge", {"SM_VLLM_TENSOR_PARALLEL_SIZE": "4"}, 0),
        ],
    )
    def test_blocks_of_fp8(self, version: str, instance_type: str, more: dict[str, str], found: int) -> None:
        env = {"SM_VLLM_MODEL": self.CODER, "SM_VLLM_TENSOR_PARALLEL_SIZE": "8", **more}
        text = model(f"vllm:{version}-gpu-py312", env)

        said_of = said("SEA254", text, name="m.json", given=Given(instance_type=instance_type))
        assert len(said_of) == found
        assert all("320 of the 2,560 columns of an expert" in each for each in said_of)
        assert all("write a degree of 1 or 2 or 4, or enable_expert_parallel" in each for each in said_of)

    @pytest.mark.parametrize(
        ("image", "env", "row"),
        [
            (NEW_TGI, {"HF_MODEL_ID": "unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit"}, "tgi-bitsandbytes"),
            (OLD_TGI, {"HF_MODEL_ID": "01-ai/Yi-34B-Chat-4bits", "QUANTIZE": "awq"}, "tgi-awq"),
        ],
    )
    def test_formats_of_tgi(self, image: str, env: dict[str, str], row: str) -> None:
        (told,) = said("SEA254", model(image, env), name="m.json")
        assert row in told
        assert said("SEA254", model(self.NEW_TGI, {**env, "HF_MODEL_ID": "Qwen/Qwen2.5-7B-Instruct-AWQ"})) == []

    def test_a_t4_was_measured_by_nobody(self) -> None:
        text = model(self.OLD_TGI, {"HF_MODEL_ID": "meta-llama/Llama-2-13b-chat-hf", "HF_TOKEN": "{{x}}"})
        types = (Given(instance_type="ml.g4dn.xlarge"), Given(instance_type="ml.g5.xlarge"))
        told = [said("SEA257", text, name="m.json", given=each) for each in types]
        assert [len(each) for each in told] == [1, 0]

    @pytest.mark.parametrize(("image", "severity"), [(NEW_TGI, "error"), (CU129, "note")])
    def test_tgi_serves_no_embeddings(self, image: str, severity: str) -> None:
        (told,) = said("SEA255", model(image, {"HF_MODEL_ID": "BAAI/bge-m3"}), name="m.json")
        assert f": {severity}: " in told
        assert said("SEA255", model(image, {"HF_MODEL_ID": "Qwen/Qwen3-8B"}), name="m.json") == []

    @pytest.mark.parametrize(
        ("env", "count"),
        [
            ({"HF_MODEL_ID": "meta-llama/Llama-3.1-8B-Instruct"}, 1),
            ({"HF_MODEL_ID": "meta-llama/Llama-3.1-8B-Instruct", "HF_TOKEN": "{{x}}"}, 0),
            ({"HF_MODEL_ID": "Qwen/Qwen3-8B"}, 0),
            ({"HF_MODEL_ID": "/opt/ml/model"}, 0),
        ],
    )
    def test_gated_repositories_need_a_token(self, env: dict[str, str], count: int) -> None:
        assert len(said("SEA256", model(CU129, env), name="m.json")) == count
