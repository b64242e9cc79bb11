"""Templates, plans, manifests, Python and notebooks: what is read of them, on which line, and what is left unknown."""

from __future__ import annotations

import gc
import json
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial_lint.cli.lint import lint_command
from seatrial_lint.lint import lint
from seatrial_lint.lint.lint import lint_sources
from seatrial_lint.lint.read import read_content
from seatrial_lint.lint.source import ConfigSource, Unreadable
from tests.lint.cases import linted

if TYPE_CHECKING:
    from pathlib import Path

LMI = "djl-inference:0.36.0-lmi24.0.0-cu129"
TEMPLATE = f"""
Resources:
  Llama:
    Type: AWS::SageMaker::Model
    Properties:
      PrimaryContainer:
        Image: !Sub "763104351884.dkr.ecr.${{AWS::Region}}.amazonaws.com/{LMI}"
        Environment:
          HF_MODEL_ID: !Ref Model
          OPTION_DTYPE: bfloat16
          OPTION_ENABLE_STREAMING: !If [A, "true", !Ref AWS::NoValue]
          OPTION_MAX_ROLLING_BATCH_SIZ: !Ref Batch
          OPTION_MAX_ROLLING_BATCH_SIZE: !Ref Batch
          TENSOR_PARALLEL_DEGREE: 8
  Config:
    Type: AWS::SageMaker::EndpointConfig
    Properties:
      ProductionVariants:
        - ModelName: !GetAtt Llama.ModelName
          InstanceType: ml.g5.12xlarge
"""


def places(text: str, name: str) -> list[str]:
    """Return where each error and warning is, as `line: key: rule`."""
    return [
        f"{one.place.line}: {one.field}: {one.rule}"
        for one in linted(text, name=name).findings
        if one.severity != "note"
    ]


def environment(text: str, name: str) -> dict[str, str]:
    """Return the variables of every container, and `?` for what is unknown."""
    found = [one for one in read_content(text.encode(), name) if isinstance(one, ConfigSource)]
    return {one.key: one.value if one.is_known else "?" for source in found for one in source.entries}


class TestTemplates:
    FOUND = (
        "10: OPTION_DTYPE: SEA317",
        "12: OPTION_MAX_ROLLING_BATCH_SIZ: SEA313",
        "14: TENSOR_PARALLEL_DEGREE: SEA326",
    )

    def test_short_forms_are_unknown_and_a_reference_joins_the_variant(self) -> None:
        assert places(TEMPLATE, "stack.yaml") == list(self.FOUND)

    def test_what_cdk_writes_is_read_alike(self) -> None:
        image = {"Fn::Join": ["", ["1.dkr.ecr.", {"Ref": "AWS::Region"}, f".amazonaws.com/{LMI}"]]}
        container = {"Image": image, "Environment": {"OPTION_DTYPE": "bfloat16", "HF_MODEL_ID": {"Ref": "Model"}}}
        model = {"Type": "AWS::SageMaker::Model", "Properties": {"PrimaryContainer": container}}
        text = json.dumps({"Resources": {"M": model}}, indent=1)
        report = linted(text, name="S.template.json")
        assert report.readings[0].startswith("S.template.json: CloudFormation template, read as LMI 24, lmi-async")
        assert [one.field for one in report.findings if one.severity == "error"] == ["OPTION_DTYPE"]

    @pytest.mark.parametrize("whole", ["!If [A, {DTYPE: x}, {}]", "{Fn::Transform: {Name: x}}"])
    def test_nothing_is_missing_in_an_environment_that_is_not_literal(self, whole: str) -> None:
        text = TEMPLATE.partition("        Environment:")[0] + f"        Environment: {whole}\n"
        report = linted(text, name="stack.yaml")
        assert report.findings == ()
        assert report.readings[0].endswith("; its Environment is not literal")


def test_a_terraform_plan_is_read_and_what_is_known_later_is_not_judged() -> None:
    container = {
        "image": f"763104351884.dkr.ecr.us-east-1.amazonaws.com/{LMI}",
        "environment": {"OPTION_DTYPE": "bfloat16", "TENSOR_PARALLEL_DEGREE": "8"},
    }
    model = {"address": "a.m", "type": "aws_sagemaker_model", "values": {"name": "m", "primary_container": [container]}}
    variant = {"model_name": "m", "instance_type": "ml.g5.12xlarge"}
    config = {"type": "aws_sagemaker_endpoint_configuration", "values": {"production_variants": [variant]}}
    later = {"primary_container": [{"environment": {"HF_MODEL_ID": True}}]}
    modules = {"resources": [model], "child_modules": [{"resources": [config]}]}
    changes = [{"address": "a.m", "change": {"after_unknown": later}}]
    plan = {"planned_values": {"root_module": modules}, "resource_changes": changes}
    text = json.dumps(plan)
    assert places(text, "plan.json") == ["1: OPTION_DTYPE: SEA317", "1: TENSOR_PARALLEL_DEGREE: SEA326"]
    assert environment(text, "plan.json")["HF_MODEL_ID"] == "?"
    unchecked = "; roles, scaling and alarms of a plan are not checked"
    assert [each.endswith(unchecked) for each in linted(text, name="plan.json").readings] == [True]


class TestManifests:
    def test_compose(self) -> None:
        text = (
            "x-env: &env\n  SM_VLLM_DTYPE: bf16\nservices:\n  db:\n    image: postgres:16\n    environment:\n"
            "      POSTGRES_PASSWORD: swordfish9\n  llm:\n    image: vllm/vllm-openai:v0.23.0\n    environment:\n"
            "      <<: *env\n      SM_VLLM_SEED: ${SEED}\n    command: [--model, a/b]\n"
        )
        assert places(text, "compose.yml") == ["2: SM_VLLM_DTYPE: SEA317"]
        assert linted(text, name="compose.yml").readings[0].endswith("; its command is not read")

    def test_kubernetes(self) -> None:
        text = (
            "apiVersion: apps/v1\nkind: Deployment\nspec:\n  template:\n    spec:\n      containers:\n"
            "      - image: ghcr.io/huggingface/text-generation-inference:3.3.6\n        env:\n"
            "        - {name: DTYPE, value: bf16}\n        - name: HF_TOKEN\n"
            "          valueFrom: {secretKeyRef: {name: a, key: b}}\n"
        )
        assert places(text, "deploy.yaml") == ["9: DTYPE: SEA317"]
        assert environment(text, "deploy.yaml") == {"DTYPE": "bf16", "HF_TOKEN": "?"}


PYTHON = f"""
image = image_uris.retrieve(framework="djl-lmi", region=region, version="0.29.0")
env = {{
    "HF_MODEL_ID": model_id,
    "OPTION_DTYPE": "bfloat16",
    "TENSOR_PARALLEL_DEGREE": json.dumps(8),
}}
env["OPTION_MODEL_LOADING_TIMEOUT"] = f"{{seed}}"
if large:
    env["OPTION_MAX_MODEL_LEN"] = "x"
model = Model(image_uri=image, env=env, role=role)
model.deploy(initial_instance_count=1, instance_type="ml.g5.12xlarge")
env = {{**base, "OPTION_DTYPE": "bfloat16"}}
container = {{"Image": f"{{account}}.dkr.ecr.eu-west-1.amazonaws.com/{LMI}", "Environment": env}}
client.create_model(ModelName="m", PrimaryContainer=container)
"""


class TestPython:
    def test_literals_are_followed_and_the_rest_is_unknown(self) -> None:
        assert environment(PYTHON.partition("container")[0], "deploy.py") == {
            "HF_MODEL_ID": "?",
            "OPTION_DTYPE": "bfloat16",
            "TENSOR_PARALLEL_DEGREE": "8",
            "OPTION_MODEL_LOADING_TIMEOUT": "?",
            "OPTION_MAX_MODEL_LEN": "?",
        }

    def test_findings_stand_on_the_line_of_the_key(self) -> None:
        found = places(PYTHON, "deploy.py")
        assert found == ["5: OPTION_DTYPE: SEA317", "6: TENSOR_PARALLEL_DEGREE: SEA326", "13: OPTION_DTYPE: SEA317"]

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("e = {'A_B': '1'}\nfor x in y:\n    e['A_B'] = x\nModel(env=e)", {"A_B": "?"}),
            (
                "e = {'A_B': '1'}\ne.update({'C_D': '2'})\ne.update(E='3')\nModel(env=e)",
                {"A_B": "1", "C_D": "2", "E": "3"},
            ),
            ("e = {'A_B': '1'}\ndef f(e):\n    Model(env=e)", {}),
            ("e = {'A_B': '1'}\ne |= other\nModel(env=e)", {}),
            ("Model(env={'A_B': 'x' + str(4), 'C_D': True})", {"A_B": "x4", "C_D": "true"}),
        ],
    )
    def test_what_may_be_otherwise_is_unknown(self, text: str, expected: dict[str, str]) -> None:
        assert environment(text, "deploy.py") == expected

    def test_what_is_no_python_is_told(self) -> None:
        assert read_content(b"Model(env=", "deploy.py") == (
            Unreadable("deploy.py", "not Python: line 1: '(' was never closed"),
        )


def test_a_notebook_has_files_that_cells_write_and_names_of_earlier_cells() -> None:
    cells = [
        ["%%writefile code/serving.properties\n", "option.model_id=a/b\n", "option.dtype=bfloat16\n"],
        ["!pip install x\n", "env = {'SM_NUM_GPUS': '1', 'DTYPE': 'bf16', 'HF_MODEL_ID': 'a/b'}\n"],
        ["this is no python\n"],
        ["Model(env=env, image_uri=get_huggingface_llm_image_uri('huggingface', version='3.3.6'))"],
    ]
    document = {"cells": [{"cell_type": "code", "source": cell} for cell in cells]}
    text = json.dumps(document, indent=1)
    lines = {line.strip(): number for number, line in enumerate(text.splitlines(), start=1)}
    dtype, env = (
        lines['"option.dtype=bfloat16\\n"'],
        next(number for line, number in lines.items() if "env = {" in line),
    )
    assert places(text, "deploy.ipynb") == [f"{dtype}: option.dtype: SEA317", f"{env}: DTYPE: SEA317"]
    assert linted(text, name="deploy.ipynb").readings[-1].endswith("; 1 cell not read: no Python")


def notebook(*cells: str) -> str:
    return json.dumps({"cells": [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]})


OLD = "Model(image_uri=image_uris.retrieve(framework='djl-deepspeed', region=here, version='0.23.0'))"
NEW = "Model(image_uri='763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130')"
S3URL = "%%writefile code/serving.properties\nengine=Python\noption.s3url=s3://b/w/\n"


@pytest.mark.parametrize(
    ("cells", "rules"),
    [
        # The file is packed by the model beside it: its image decides which options are read.
        ((S3URL, OLD), []),
        ((S3URL, NEW), ["SEA315"]),
        ((S3URL, OLD, NEW), ["SEA315"]),
        # An image of one's own, built on an old one.
        ((S3URL, OLD.replace("Model(image_uri=", "base = (") + "\nModel(image_uri=built, env={'A': '1'})"), []),
        ((S3URL,), ["SEA315"]),
    ],
)
def test_what_a_notebook_writes_is_read_by_the_image_of_its_model(cells: tuple[str, ...], rules: list[str]) -> None:
    report = linted(notebook(*cells), name="deploy.ipynb")
    assert [one.rule for one in report.findings if one.field == "option.s3url"] == rules


@pytest.mark.parametrize(
    "text",
    [
        '#!/bin/bash\nARGS="--a"\nARGS="${ARGS} --b"\nexec serve $ARGS\n',
        'ARGS=--a\nif [ -n "$X" ]; then\n  ARGS="$ARGS --b"\nfi\n',
        "FROM debian\nARG A=1\nRUN cmake -B build && \\\n    B=2 make\nENV C=3\nB=4 \\\nB=5\n",
    ],
)
@pytest.mark.parametrize("name", ["serve", "start.sh", "Dockerfile"])
def test_scripts_and_dockerfiles_are_no_environment_files(name: str, text: str) -> None:
    assert read_content(text.encode(), name) == (Unreadable(name, "not a serving configuration"),)
    assert places(notebook(f"%%writefile {name}\n{text}"), "a.ipynb") == []


def test_names_without_a_value_and_remarks_are_in_environment_files() -> None:
    (found,) = read_content(b"# ours\n\nHF_TOKEN\nexport OPTION_DTYPE=fp16\r\n", "settings")
    assert isinstance(found, ConfigSource)
    assert [entry.key for entry in found.entries] == ["OPTION_DTYPE"]


@pytest.mark.parametrize(
    ("content", "name", "because"),
    [
        (b"a: 1\n", "a.yaml", "not an environment, model, inference component or endpoint config"),
        (b"image: [\n", "a.yaml", "not YAML: line 2: did not find expected node content"),
        (b"image: " + b"[" * 100, "a.yaml", "not YAML: nested deeper than 64"),
        (b"print(1)\n", "a.py", "no call that makes a model has a literal environment or image"),
        (b"", "main.tf", "Terraform's own files are not read; give the plan: terraform show -json PLAN"),
    ],
)
def test_what_can_not_be_read_is_told(content: bytes, name: str, because: str) -> None:
    assert read_content(content, name) == (Unreadable(name, because),)


def test_aliases_of_aliases_are_bounded() -> None:
    lines = ["a0: &a0 {image: x}"] + [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9)]
    (found,) = read_content("\n".join(lines).encode(), "bomb.yaml")
    assert found == Unreadable("bomb.yaml", "not YAML: more than 200,000 values")


WORDS = st.sampled_from(
    [*TEMPLATE.split("\n"), *PYTHON.split("\n"), "services:", "  x: &a", "<<: *a", "- !Sub", "kind: x"]
)


@given(st.lists(WORDS, max_size=25).map("\n".join), st.sampled_from(["a.yaml", "a.py", "a.template"]))
def test_lines_in_any_order_never_crash_it(text: str, name: str) -> None:
    lint_sources(read_content(text.encode(), name))


def test_a_mistake_of_the_rules_is_told_as_none_of_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def mistaken(*_: object) -> None:
        raise ValueError("a mistake of ours")

    file = tmp_path / "a.env"
    file.write_text("OPTION_DTYPE=fp16\n")
    monkeypatch.setattr(lint, "lint_sources", mistaken)
    with pytest.raises(ValueError, match="a mistake of ours"):
        lint_command([file], engine="lmi", version="lmi27")
    gc.enable()  # a run of the command does without
