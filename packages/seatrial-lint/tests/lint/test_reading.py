"""Which form a file has, where its keys stand, and which container it is for."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.findings import Finding, Place
from seatrial_base.printer import MOST_LISTED, text_lines
from seatrial_lint.lint.lint import Given, lint_sources
from seatrial_lint.lint.read import MAX_BYTES, MAX_KEYS, read_content, read_file, read_path, read_stdin
from seatrial_lint.lint.redaction import redact_findings
from seatrial_lint.lint.source import ConfigSource, SourceEntry, Unreadable
from seatrial_lint.lint.target import ENGINES
from seatrial_lint.text_nodes import read_json
from tests.lint.cases import linted

REGISTRY = "763104351884.dkr.ecr.us-east-1.amazonaws.com"


def entries(text: str, name: str) -> list[tuple[int, str, str]]:
    found = read_content(text.encode(), name)
    return [
        (entry.line, entry.key, entry.value) for one in found if isinstance(one, ConfigSource) for entry in one.entries
    ]


class TestLines:
    def test_properties(self) -> None:
        text = "# a comment\n\noption.a=1\r\n option.b : two \\\n   words\noption.c\toption\n!x\noption.d=\\u00e9\n"
        assert entries(text, "serving.properties") == [
            (3, "option.a", "1"),
            (4, "option.b", "two words"),
            (6, "option.c", "option"),
            (8, "option.d", "é"),
        ]

    def test_environment(self) -> None:
        text = "# a comment\nexport A=1\r\n\nB = 'two words' \nno variable\nC=x=y\n"
        assert entries(text, ".env") == [(2, "A", "1"), (4, "B", "two words"), (6, "C", "x=y")]

    def test_environment_json(self) -> None:
        text = '{\n "HF_MODEL_ID": "a",\n "SM_NUM_GPUS": 4,\n "NOTHING": null}'
        assert entries('{\n "HF_MODEL_ID": "a",\n "SM_NUM_GPUS": 4}', "env.json") == [
            (2, "HF_MODEL_ID", "a"),
            (3, "SM_NUM_GPUS", "4"),
        ]
        assert isinstance(read_content(text.encode(), "env.json")[0], Unreadable)

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(),
            lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
            max_leaves=20,
        )
    )
    def test_json_has_its_scalars_where_they_stand(self, document: object) -> None:
        text = json.dumps(document, indent=1)
        node = read_json(text)
        assert json.loads(text[slice(*node.span)]) == document


class TestModels:
    def test_every_container_of_a_model_is_read(self) -> None:
        one = {"Image": "a/djl-inference:0.36.0-lmi27.0.0-cu130", "Environment": {"OPTION_DTYPE": "fp16"}}
        two = {
            "Image": f"{REGISTRY}/huggingface-pytorch-tgi-inference:2.4.0-tgi3.0.1-gpu",
            "Environment": {"DTYPE": "x"},
        }
        report = linted(json.dumps({"ModelName": "m", "Containers": [one, two]}), name="m.json")
        assert report.readings == (
            "m.json: model definition, read as LMI 27, lmi-async (image 0.36.0-lmi27.0.0-cu130)",
            "m.json: model definition, read as TGI 3.0.1 (image 2.4.0-tgi3.0.1-gpu)",
        )

    def test_an_inference_component_is_read(self) -> None:
        container = {
            "Image": "x/vllm:0.30.0-gpu-py312-cu130-ubuntu24.04-sagemaker",
            "Environment": {"SM_VLLM_DTYPE": "bf16"},
        }
        startup = {"ContainerStartupHealthCheckTimeoutInSeconds": 900}
        document = {"Specification": {"Container": container, "StartupParameters": startup}}
        report = linted(json.dumps(document), name="c.json")
        assert report.readings[0].startswith("c.json: model definition, read as vLLM 0.30.0 (image 0.30.0-gpu")
        assert "SEA317" in {one.rule for one in report.findings}

    @pytest.mark.parametrize(
        ("image", "read_as"),
        [
            (
                "djl-inference:0.0.0.dev1-lmi0.0.0-cu128",
                "LMI 27, lmi-async (image 0.0.0.dev1-lmi0.0.0-cu128; version as",
            ),
            (
                "huggingface-pytorch-tgi-inference:1.13.1-optimum0.0.20-neuronx-py310",
                "TGI of optimum-neuron 0.0.20, tg",
            ),
            ("vllm:server-sagemaker-cuda-v2.2", "vLLM 0.26.0 (image server-sagemaker-cuda-v2.2)"),
            ("vllm:server-sagemaker-cuda-v9.9", "vLLM 0.26.0 (image server-sagemaker-cuda-v9.9; version assumed"),
        ],
    )
    def test_a_tag_that_names_no_version_is_unknown_and_no_old_one(self, image: str, read_as: str) -> None:
        container = {"Image": f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{image}", "Environment": {}}
        report = linted(json.dumps({"PrimaryContainer": container}), name="m.json")
        assert report.readings[0].startswith(f"m.json: model definition, read as {read_as}")

    @pytest.mark.parametrize("wrapped", ["Model", ""])
    def test_a_definition_may_be_wrapped(self, wrapped: str) -> None:
        model = {"PrimaryContainer": {"Image": "x/djl-inference:0.33.0-lmi15.0.0-cu128", "Environment": {}}}
        report = linted(json.dumps({wrapped: model} if wrapped else model), name="m.json")
        assert report.readings == ("m.json: model definition, read as LMI 15, lmi-vllm (image 0.33.0-lmi15.0.0-cu128)",)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("option.model_id=a/b", "serving.properties", "LMI 27, lmi-async (a serving.properties is read by LMI"),
        ("option.rolling_batch=vllm", "serving.properties", "LMI 27, lmi-vllm"),
        ("option.rolling_batch=lmi-dist", "serving.properties", "LMI 14, lmi-dist"),
        ("option.rolling_batch=trtllm", "serving.properties", "LMI 15, lmi-trtllm"),
        ("engine=MPI\noption.paged_attention=true\noption.rolling_batch=auto", "x.properties", "DJL 0.25, lmi-dist"),
        ("engine=DeepSpeed", "serving.properties", "LMI 9, lmi-deepspeed"),
        ("option.entryPoint=djl_python.transformers_neuronx", "serving.properties", "LMI 11, lmi-neuronx"),
        ("batch_size=4", "serving.properties", "LMI 27, lmi-python"),
        ("MAX_TOTAL_TOKENS=2", ".env", "TGI 3.3.6 (MAX_TOTAL_TOKENS is a variable of TGI"),
        ("OPTION_DTYPE=fp16", ".env", "LMI 27, lmi-async (OPTION_DTYPE is a variable of LMI"),
        ("SM_VLLM_DTYPE=half", ".env", "vLLM"),
        ("SM_SGLANG_TP=2", ".env", "SGLang"),
    ],
)
def test_engine_and_version_are_guessed_and_told(text: str, name: str, expected: str) -> None:
    (reading,) = linted(text, name=name).readings
    assert f", read as {expected}" in reading
    assert reading.endswith("version assumed, the newest; give --version)")


@pytest.mark.parametrize(
    ("image", "text", "expected"),
    [
        # From before what the catalog knows: for GPUs, and judged by what holds in every version.
        (
            "huggingface-pytorch-tgi-inference:2.0.0-tgi0.8.2-gpu-py39-cu118-ubuntu20.04",
            {},
            "TGI from before what is known",
        ),
        ("djl-inference:0.21.0-fastertransformer5.3.0-cu117", {"OPTION_S3URL": "s3://b/w/"}, "LMI from before what"),
        ("huggingface-pytorch-tgi-inference:2.1.2-optimum0.0.28-neuronx-py310-ubuntu22.04", {}, "tgi-neuronx (image"),
        # Hugging Face's own toolkit reads the task too.
        ("${image}", {"HF_MODEL_ID": "a/b", "HF_TASK": "text-classification"}, "container unknown"),
    ],
)
def test_containers_that_are_easily_taken_for_others(image: str, text: dict[str, str], expected: str) -> None:
    container = {"Image": f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{image}", "Environment": text}
    document = json.dumps({"PrimaryContainer": container | {"ModelDataUrl": "s3://b/model.tar.gz"}})
    report = linted(document, name="model.json")
    assert expected in report.readings[0]
    assert {one.rule for one in report.findings if one.severity != "note"} <= {"SEA341"}


def test_what_is_given_overrules_the_guess() -> None:
    report = linted("OPTION_DTYPE=fp16", name=".env", given=Given(engine="tgi", version="2.0.2"))
    assert report.readings == (".env: environment file, read as TGI 2.0.2 (as given)",)


def test_an_unknown_container_is_told_and_its_secrets_are_still_found() -> None:
    report = linted("MY_PASSWORD=secret\n", name=".env")
    assert report.readings == (".env: environment file; container unknown: give --engine",)
    assert [one.rule for one in report.findings] == ["SEA330"]


class TestHugeFiles:
    @pytest.mark.parametrize(
        ("name", "text"),
        [
            ("a.env", "OPTION_X=1\n" * 100_000),
            ("a.properties", "a=1\n" * 100_000),
            ("a.json", "{" + ",".join(['"OPTION_DTYPE":"fp16"'] * 10_000) + "}"),
        ],
    )
    def test_the_first_keys_are_read_and_the_rest_is_told(self, name: str, text: str) -> None:
        source, rest = read_content(text.encode(), name)
        assert isinstance(source, ConfigSource)
        assert len(source.entries) == MAX_KEYS
        assert rest == Unreadable(name, "only its first 2,000 keys are read", is_failure=True)

    def test_findings_of_one_rule_are_listed_up_to_a_limit(self) -> None:
        report = linted("OPTION_SEED=1\n" * 300, name="a.env")
        assert sum(one.rule == "SEA320" for one in report.findings) == 299
        listed = [str(one) for one in text_lines(report.listed) if "SEA320" in one]
        assert len(listed) == MOST_LISTED + 1
        assert listed[-1].endswith("SEA320: warning: 199 more findings of this rule in this file are not listed")
        assert report.summary == "1 file: 0 errors, 299 warnings, 0 notes"

    def test_json_has_a_bound(self) -> None:
        (found,) = read_content(b"[" + b"1," * 200_000 + b"1]", "a.json")
        assert found == Unreadable("a.json", "not JSON: more than 200,000 values")


class TestSecrets:
    def test_a_common_word_as_a_secret_alters_no_other_text(self) -> None:
        token = read_content(b"HF_TOKEN=model\nOPTION_DTYPE=model\n", "a/a.env")
        other = read_content(b"option.model_idd=org/model\noption.dtype=model\n", "b/serving.properties")
        texts = [f"{one.field} {one.message} {one.hint}" for one in lint_sources([*token, *other]).findings]
        assert "SEA330" in {one.rule for one in lint_sources(token).findings}
        assert not any("hidden" in text for text in texts)
        assert any("option.model_idd" in text for text in texts)

    @pytest.mark.parametrize("secret", ["swordfish", "aB3-xyz!dE5"])
    def test_a_repeated_secret_is_hidden_in_its_file(self, secret: str) -> None:
        report = linted(f"option.api_key=other9\noption.api_key={secret}\n")
        assert secret not in " ".join(f"{one.message} {one.hint}" for one in report.findings)

    @pytest.mark.parametrize("secret", ["a9-b9", "a9.*b9(", "-a9-", "a" * 40])
    def test_a_secret_is_hidden_where_it_is_no_part_of_a_longer_word(self, secret: str) -> None:
        source = ConfigSource("a.env", "environment file", (SourceEntry("API_KEY", secret, 1, "env"),))
        words = f"{secret} x{secret} {secret}_ '{secret}',{secret}"
        (told,) = redact_findings(
            [Finding("SEA320", Place("a.env", 1, field="API_KEY"), words, f"={secret}")], [source]
        )
        assert told.message.startswith("(hidden) ")
        assert told.message.endswith(" '(hidden)',(hidden)")
        assert f"{secret}_" in told.message
        assert told.hint == "=(hidden)"

    def test_a_secret_of_the_packaged_file_is_hidden_in_what_overrules_it(self) -> None:
        packaged = read_content(b"option.model_id=a/b\noption.api_key=swordfish\n", "m/serving.properties")
        report = lint_sources([*packaged, *read_content(b"OPTION_API_KEY=other\n", "m/a.env")])
        assert [one.message.partition(" on ")[0] for one in report.findings if one.rule == "SEA343"] == [
            "m/serving.properties has (hidden)"
        ]


class TestFolders:
    def test_configurations_are_found_and_other_files_passed_over(self, tmp_path: Path) -> None:
        (tmp_path / "code").mkdir()
        (tmp_path / "code" / "serving.properties").write_text("option.dtype=fp16\n")
        (tmp_path / "model.json").write_text('{"hidden_size": 4096}')
        (tmp_path / "weights.safetensors").write_bytes(b"\0" * 10)
        (tmp_path / "prod.env").write_text("SM_NUM_GPUS=2\n")
        assert [Path(one.file).name for one in read_path(tmp_path)] == ["serving.properties", "prod.env"][::-1]

    def test_links_that_leave_the_folder_are_not_followed(self, tmp_path: Path) -> None:
        outside = tmp_path / "outside"
        inside = tmp_path / "inside"
        for folder in (outside, inside):
            folder.mkdir()
            (folder / "serving.properties").write_text("option.dtype=fp16\n")
        (inside / "file.properties").symlink_to(outside / "serving.properties")
        (inside / "folder").symlink_to(outside)
        (inside / "own.properties").symlink_to(inside / "serving.properties")
        (inside / "loop.env").symlink_to(inside / "loop.env")
        found = [Path(one.file).relative_to(inside).as_posix() for one in read_path(inside)]
        assert found == ["own.properties", "serving.properties"]

    def test_a_handler_beside_the_file_may_read_any_option(self, tmp_path: Path) -> None:
        (tmp_path / "serving.properties").write_text("option.my_own=1\n")
        assert "SEA313" in {one.rule for one in lint_sources(read_path(tmp_path)).findings}
        (tmp_path / "model.py").write_text("")
        assert "SEA313" not in {one.rule for one in lint_sources(read_path(tmp_path)).findings}

    def test_an_empty_folder_is_unreadable(self, tmp_path: Path) -> None:
        (found,) = read_path(tmp_path)
        assert isinstance(found, Unreadable)
        assert found.because == "no serving configuration in this folder"


@pytest.mark.parametrize(
    ("content", "name", "because"),
    [
        (b"\x7fELF\0", "a.env", "not a text file"),
        (b"x" * (MAX_BYTES + 1), "a.env", "larger than 4,194,304 bytes"),
        (b"{", "a.json", "not JSON: line 1: a name in quotes is missing"),
        (b"[" * 100, "a.json", "not JSON: line 1: nested deeper than 64"),
        (b'{"a": 1} x', "a.json", "not JSON: line 1: something follows the JSON text"),
        (b'{"a": [1]}', "a.json", "not an environment, model, inference component or endpoint config"),
        (b"prose", "README", "not a serving configuration"),
    ],
)
def test_what_can_not_be_read_is_told(content: bytes, name: str, because: str) -> None:
    assert read_content(content, name) == (Unreadable(name, because),)


@pytest.mark.parametrize("name", ["a" * 5000, "a\0b"])
def test_a_path_that_can_not_exist_is_told(name: str) -> None:
    (found,) = read_path(Path(name))
    assert isinstance(found, Unreadable)


def test_the_standard_input_is_read_by_its_name_or_content() -> None:
    (found,) = read_stdin(io.BytesIO(b"DTYPE=x\n"), "prod.env")
    assert isinstance(found, ConfigSource)
    assert (found.file, found.kind) == ("prod.env", "environment file")
    (found,) = read_stdin(io.BytesIO(b"option.dtype=x\n"), "stdin")
    assert isinstance(found, ConfigSource)
    assert found.kind == "serving.properties"


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    file = tmp_path / "none.env"
    assert read_file(file) == (Unreadable(file.as_posix(), "no such file", is_failure=True),)


NAMES = st.sampled_from(["serving.properties", ".env", "a.json", "a", "b.properties"])
WORDS = st.sampled_from(
    [
        "option.",
        "OPTION_",
        "SM_VLLM_",
        "HF_MODEL_ID",
        "rolling_batch=vllm",
        "tensor_parallel_degree",
        "=",
        ":",
        "\n",
        "\\",
        "{",
        "}",
        "[",
        "]",
        '"',
        ",",
        "1",
        "²",
        "99999999999999999999",
        "true",
        "null",
        "Environment",
        "Image",
        "PrimaryContainer",
        'speculative_config={"method":[]}',
        "MAX_INPUT_TOKENS",
        "DTYPE",
        "hf_",
        "\ud7ff",
        "\x00",
    ]
)


class TestFuzz:
    @given(st.binary(max_size=200), NAMES)
    def test_arbitrary_bytes_never_crash_it(self, content: bytes, name: str) -> None:
        lint_sources(read_content(content, name))

    @given(
        st.lists(WORDS, max_size=30).map("".join), NAMES, st.sampled_from([None, "ml.g5.12xlarge", "ml.inf2.xlarge"])
    )
    def test_words_in_any_order_never_crash_it(self, text: str, name: str, instance: str | None) -> None:
        for engine in ENGINES:
            lint_sources(read_content(text.encode(), name), Given(engine=engine, instance_type=instance))
        lint_sources(read_content(text.encode(), name), Given(instance_type=instance))
