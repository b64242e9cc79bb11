"""What SageMaker makes of a model definition."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import read_content
from tests.lint.cases import LMI, TGI, said

if TYPE_CHECKING:
    from collections.abc import Mapping

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"
CU130 = "djl-inference:0.36.0-lmi27.0.0-cu130"
CU129 = "djl-inference:0.36.0-lmi24.0.0-cu129"
NEURON = "djl-inference:0.29.0-neuronx-sdk2.19.1"
MOUNTED = {"HF_MODEL_ID": "/opt/ml/model", "OPTION_MAX_ROLLING_BATCH_SIZE": "4"}
HUB = {"HF_MODEL_ID": "org/model", "HF_REVISION": "abc", "OPTION_MAX_ROLLING_BATCH_SIZE": "4"}
GATED = "s3://jumpstart-private-cache-prod-us-east-1/llama/"


def model(
    image: str = CU129, env: Mapping[str, object] | None = None, *, isolated: bool = False, **container: object
) -> str:
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
            # What only the deployment knows.
            ("0.26.0", "ml.p5.48xlarge", {"SM_VLLM_ENABLE_EXPERT_PARALLEL": {"Ref": "X"}}, 0),
            ("0.26.0", "ml.p5.48xlarge", {"SM_VLLM_TENSOR_PARALLEL_SIZE": {"Ref": "X"}}, 0),
        ],
    )
    def test_blocks_of_fp8(self, version: str, instance_type: str, more: dict[str, object], found: int) -> None:
        env: dict[str, object] = {"SM_VLLM_MODEL": self.CODER, "SM_VLLM_TENSOR_PARALLEL_SIZE": "8", **more}
        text = model(f"vllm:{version}-gpu-py312", env)

        said_of = said("SEA254", text, name="m.json", given=Given(instance_type=instance_type))
        assert len(said_of) == found
        assert all("320 of the 2,560 columns of an expert" in each for each in said_of)
        # 480 GB of weights fit on no four accelerators of 80 GB.
        assert all("| write enable_expert_parallel (vllm-fp8-experts" in each for each in said_of)
        larger = said("SEA254", text, name="m.json", given=Given(instance_type="ml.p5en.48xlarge"))
        assert all("write a degree of 4, or enable_expert_parallel" in each for each in larger)

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


TGI_IMAGE = "huggingface-pytorch-tgi-inference:2.7.0-tgi3.3.6-gpu-py311-cu124-ubuntu22.04"
OWN = "111122223333.dkr.ecr.us-east-1.amazonaws.com"
TEI = "683313688378.dkr.ecr.us-east-1.amazonaws.com/tei:2.0.1-tei1.8.2-gpu-py310-cu122-ubuntu22.04"
DJL = f"{REGISTRY}/djl-inference"
# An image, and what one rule says of it, with its severity; empty texts where it says nothing.
ADDRESSES: list[tuple[str, str, str, str]] = [
    ("ghcr.io/huggingface/text-generation-inference:1.0.1", "SEA388", "error", "pulls no image from ghcr.io"),
    ("ghcr.io/huggingface/text-generation-inference:1.0.1", "SEA391", "error", "text-generation-launcher"),
    ("vllm/vllm-openai:v0.20.2", "SEA388", "error", "pulls no image from docker.io"),
    ("public.ecr.aws/deep-learning-containers/vllm:server-sagemaker-cuda", "SEA388", "error", "public.ecr.aws"),
    (f"{OWN}/text-generation-inference:1.0.1", "SEA391", "warning", "unexpected argument 'serve'"),
    ("lmsysorg/sglang:v0.5.4", "SEA391", "error", "no program `serve`"),
    (f"{OWN}/sglang:v0.5.4", "SEA391", "", ""),
    (f"{OWN}/chat:1.4.2", "SEA388", "", ""),
    ("<YOUR_IMAGE_HERE>", "SEA388", "", ""),
    ("763104330519.dkr.ecr.us-west-2.amazonaws.com/djl-inference:x", "SEA389", "error", "account 763104351884"),
    ("763104351884.dkr.ecr.eu-central-2.amazonaws.com/djl-inference:x", "SEA389", "error", "account 380420809688"),
    ("763104351884.dkr.ecr.eu-west-1.amazonaws.com/tei:2.0.1", "SEA389", "error", "account 141502667606"),
    (TEI, "SEA389", "", ""),
    (f"{OWN}/{TGI_IMAGE}", "SEA389", "note", "only where it is a copy of your own"),
    (f"{DJL}:0.27.0-lmi10-cu124", "SEA390", "warning", "LMI 10 is of DJL 0.28.0"),
    (f"{DJL}:0.27.0-lmi9-cu124", "SEA390", "warning", "LMI 9 has no image of this name"),
    (f"{DJL}:0.32.0-lmi14.0.0-cu124", "SEA390", "note", "LMI 14 as 0.32.0-lmi14.0.0-cu126"),
    (f"{DJL}:latest", "SEA390", "warning", "no tag latest"),
    (f"{DJL}:0.34.0-lmi16.0.0-cu128-v1.2", "SEA390", "", ""),
    (f"{DJL}:0.0.0.dev1-lmi0.0.0-cu128", "SEA390", "", ""),
    (f"{DJL}:0.40.0-lmi31.0.0-cu130", "SEA390", "", ""),
    (f"{DJL}:0.30.0-neuronx-sdk2.20.1", "SEA390", "", ""),
    (f"{REGISTRY}/{TGI_IMAGE.replace('2.7.0-tgi3.3.6', '2.7-tgi3.3')}", "SEA390", "", ""),
]


@pytest.mark.parametrize(("image", "rule", "severity", "word"), ADDRESSES)
def test_an_address_is_judged_by_what_it_says(image: str, rule: str, severity: str, word: str) -> None:
    text = json.dumps({"ModelName": "m", "PrimaryContainer": {"Image": image, "Environment": HUB}})
    found = [one for one in lint_sources(read_content(text.encode(), "m.json")).findings if one.rule == rule]
    assert [one.severity for one in found] == ([severity] if severity else [])
    assert all(word in one.message or word in one.hint for one in found)


def test_a_registry_in_the_vpc_and_a_copy_of_the_roles_own_account_are_taken() -> None:
    private = {"Image": "registry.acme.example/llm:1", "ImageConfig": {"RepositoryAccessMode": "Vpc"}}
    assert said("SEA388", json.dumps({"PrimaryContainer": private | {"Environment": HUB}}), name="m.json") == []
    own = {"ExecutionRoleArn": "arn:aws:iam::111122223333:role/r", "PrimaryContainer": {"Image": f"{OWN}/{CU129}"}}
    assert said("SEA389", json.dumps(own), name="m.json") == []


@pytest.mark.parametrize(
    ("image", "instance", "model_id", "rule", "word"),
    [
        (f"{OWN}/chat:1-arm64", "ml.g5.xlarge", "", "SEA392", "exec format error"),
        (f"{OWN}/chat:1-arm64", "ml.c7g.xlarge", "", "SEA392", ""),
        (f"{OWN}/chat:1-amd64", "ml.g5g.xlarge", "", "SEA392", "exec format error"),
        (f"{REGISTRY}/{CU129}", "ml.p6e-gb200.36xlarge", "", "SEA392", "exec format error"),
        (f"{REGISTRY}/{TGI_IMAGE}", "ml.m5.xlarge", "", "SEA392", "needs a GPU"),
        (f"{REGISTRY}/{CU129}", "ml.g6e.xlarge", "", "SEA392", ""),
        (TEI, "ml.g5.xlarge", "meta-llama/Llama-3.1-8B-Instruct", "SEA397", "generates no text"),
        (TEI, "ml.g5.xlarge", "BAAI/bge-large-en-v1.5", "SEA397", ""),
        (f"{REGISTRY}/{TGI_IMAGE}", "ml.g5.xlarge", "meta-llama/Llama-3.1-8B-Instruct", "SEA397", ""),
    ],
)
def test_an_image_has_the_architecture_of_the_instance_and_serves_the_kind_of_the_model(
    image: str, instance: str, model_id: str, rule: str, word: str
) -> None:
    container = {"Image": image, "Environment": {"HF_MODEL_ID": model_id or "/opt/ml/model"}}
    text = json.dumps({"ModelName": "m", "PrimaryContainer": container})
    assert [word in one for one in together(rule, text, config(InstanceType=instance))] == [True] * bool(word)


def test_images_of_ones_own_are_not_judged_by_the_entrypoint_of_the_stock_ones() -> None:
    """AWS's example of gpt-oss: an entrypoint of its own turns OPTION_* into arguments of vLLM."""
    env = {"OPTION_MODEL": "openai/gpt-oss-20b", "OPTION_TENSOR_PARALLEL_SIZE": "4", "OPTION_ASYNC_SCHEDULING": "true"}
    for image in (f"{OWN}/vllm:v0.10.2-gpt-oss", f"{OWN}/vllm-own:v0.10.2", f"{OWN}/sglang-own:0.5.4"):
        text = json.dumps({"ModelName": "m", "PrimaryContainer": {"Image": image, "Environment": env}}, indent=1)
        sources = [*read_content(text.encode(), "0.json")]
        sources += read_content(config(InstanceType="ml.g6e.12xlarge").encode(), "1.json")
        found = [one.rule for one in lint_sources(sources).findings if one.severity != "note"]
        assert found == []
    stock = model("vllm:0.26.0-gpu-py312-cu130-ubuntu22.04-sagemaker", {"OPTION_MODEL": "openai/gpt-oss-20b"})
    assert len(said("SEA316", stock, name="m.json")) == 1


@pytest.mark.parametrize(
    ("container", "env", "rule", "word"),
    [
        ({}, {"HF_MODEL_ID": "s3://w/job-7/model.tar.gz"}, "SEA393", "a model in S3 is a prefix"),
        ({}, {"HF_MODEL_ID": "s3://w/job-7/"}, "SEA393", ""),
        ({"ModelDataUrl": "s3://w/job-7/"}, MOUNTED, "SEA393", "is no archive"),
        ({"ModelDataUrl": "s3://w/job-7/model.tar.gz"}, MOUNTED, "SEA393", ""),
        ({"ModelDataUrl": "s3://w/models/", "Mode": "MultiModel"}, MOUNTED, "SEA393", ""),
        ({"ModelDataSource": weights("s3://w/job-7/model.tar.gz")}, MOUNTED, "SEA393", "is not unpacked"),
        ({"ModelDataSource": weights("s3://w/job-7/", CompressionType="Gzip")}, MOUNTED, "SEA393", "means one archive"),
        ({"ModelDataSource": weights({"Ref": "Uri"}, CompressionType="Gzip")}, MOUNTED, "SEA393", ""),  # type: ignore[arg-type]  # a function
        ({"ModelDataSource": weights("s3://w/tuned/")}, HUB, "SEA394", "loads org/model from the hub instead"),
        ({"ModelDataSource": weights("s3://w/tuned/")}, MOUNTED, "SEA394", ""),
    ],
)
def test_weights_are_where_the_container_looks_for_them(
    container: dict[str, object], env: dict[str, str], rule: str, word: str
) -> None:
    found = said(rule, model(CU129, env, isolated=False, **container), name="m.json")
    assert [word in one for one in found] == [True] * bool(word)


@pytest.mark.parametrize(
    ("hub", "seconds", "words"),
    [
        ("meta-llama/Llama-3.1-405B-Instruct", None, ["the longest startup", "seatrial stage"]),
        ("meta-llama/Llama-3.1-70B-Instruct", 600, ["raise ContainerStartup", "seatrial stage"]),
        ("meta-llama/Llama-3.1-70B-Instruct", 1800, []),
    ],
)
def test_a_download_that_outlasts_the_health_check_is_told(hub: str, seconds: int | None, words: list[str]) -> None:
    variant = {"ContainerStartupHealthCheckTimeoutInSeconds": seconds} if seconds else {}
    sources = [*read_content(model(env={"HF_MODEL_ID": hub}).encode(), "0.json")]
    sources += read_content(config(InstanceType="ml.p4d.24xlarge", **variant).encode(), "1.json")
    found = [f"{one.message} {one.hint}" for one in lint_sources(sources).findings if one.rule == "SEA395"]
    assert [[word in text for word in words] for text in found] == [[True] * len(words)] * bool(words)
