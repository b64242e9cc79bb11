"""An endpoint is exported for CloudFormation and Terraform; its deployment is in tests/e2e/test_vending.py."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import hcl2
import pytest
from cfnlint import lint  # type: ignore[import-untyped]  # no type information published

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.deployment.load import load_deployment
from seatrial.operations import export
from seatrial.operations.export import Export, export_of, write_export
from seatrial_base.errors import SpecError
from tests.tools import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from seatrial.operations.export import ExportFormat

    Exported = Callable[..., Export]

SPEC, STACK = ROOT / "endpoints" / "llama-2-7b-chat.yaml", "seatrial-dev-llama-2-7b-chat"
TEMPLATE = f"{STACK}.template.json"
TYPES: Final[Mapping[str, Mapping[str, str]]] = {
    "aws_cloudformation_stack": {
        "capabilities": "list",
        "disable_rollback": "bool",
        "iam_role_arn": "string",
        "id": "string",
        "name": "string!",
        "notification_arns": "list",
        "on_failure": "string",
        "outputs": "map",
        "parameters": "map",
        "policy_body": "string",
        "policy_url": "string",
        "region": "string",
        "tags": "map",
        "template_body": "string",
        "template_url": "string",
        "timeout_in_minutes": "number",
        "timeouts": "create delete update",
    },
    "aws_s3_object": {
        "bucket": "string!",
        "content": "string",
        "id": "string",
        "key": "string!",
        "kms_key_id": "string",
        "region": "string",
        "source": "string",
        "source_hash": "string",
        "tags": "map",
    },
    "aws_s3_bucket": {"bucket": "string!", "bucket_regional_domain_name": "string", "id": "string"},
    "aws_region": {"id": "string", "region": "string"},
    "aws_caller_identity": {"account_id": "string", "id": "string"},
}
"""Arguments and attributes of hashicorp/aws 6.25.0 (npm @cdktf/provider-aws 21.22.1, lib/*); `!` is required."""
META = {"for_each", "depends_on", "lifecycle", "__is_block__"}


@pytest.fixture(scope="module")
def assembly(tmp_path_factory: pytest.TempPathFactory) -> Path:
    context = {"environment": "dev", "endpoint": SPEC.stem}
    folders = {name: ROOT / name for name in ("endpoints", "environments")}
    return synthesize(tmp_path_factory.mktemp("export") / "cdk.out", {**context, **folders})


@pytest.fixture
def exported(assembly: Path, monkeypatch: pytest.MonkeyPatch) -> Exported:
    """Return an export of what was synthesized once."""
    monkeypatch.setattr(export, "synthesized_file", lambda *_: assembly / TEMPLATE)

    def make(kind: ExportFormat = "cloudformation", bucket: str | None = None) -> Export:
        return export_of(SPEC, ROOT / "environments", "dev", kind, folder=Path("out"), bucket=bucket)[1]

    return make


def texts(made: Export) -> dict[str, str]:
    return {name: content.decode() for name, content in made.files.items() if "/" not in name}


def test_the_template_is_that_of_the_app_without_its_bootstrap(assembly: Path, exported: Exported) -> None:
    made = exported()
    template, own = json.loads(made.files[TEMPLATE]), json.loads((assembly / TEMPLATE).read_text())
    (asset,) = set(made.files) - {TEMPLATE, "README.md"}
    assert made.files[asset] == next(assembly.glob("asset.*.tar.gz")).read_bytes()
    assert [*template["Parameters"]] == ["AssetsBucket"]
    assert "Default" not in template["Parameters"]["AssetsBucket"]
    assert "cdk-" not in made.files[TEMPLATE].decode()
    url = next(each for each in template["Resources"].values() if each["Type"] == "AWS::SageMaker::Model")
    parts = url["Properties"]["PrimaryContainer"]["ModelDataUrl"]["Fn::Join"][1]
    assert [*parts[:1], parts[-1].removeprefix("/")] == ["s3://", asset.removeprefix("assets/")]
    assert parts[1] == {"Fn::Sub": "${AssetsBucket}"}
    own["Resources"] = json.loads(
        json.dumps(own["Resources"]).replace("cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1", "${AssetsBucket}")
    )
    assert template["Resources"] == own["Resources"]
    assert template["Outputs"] == own["Outputs"]
    assert exported() == made, "equal locks, equal bytes"


def test_cfn_lint_finds_nothing(exported: Exported) -> None:
    found = lint(exported(bucket="team-assets").files[TEMPLATE].decode(), regions=["us-east-1"])
    assert [each for each in found if each.rule.id != "W3005"] == []  # see tests/stacks/test_assembly.py


def test_the_commands_upload_and_deploy(exported: Exported, monkeypatch: pytest.MonkeyPatch) -> None:
    made = exported(bucket="team-assets")
    deploy = (
        f"aws cloudformation deploy --stack-name {STACK} --region us-east-1 --template-file out/{TEMPLATE} "
        "--capabilities CAPABILITY_IAM"
    )
    upload = "aws s3 cp out/assets s3://team-assets/ --recursive --region us-east-1"
    assert made.deployed_first == ("seatrial-dev-trials",)
    assert made.commands == (upload, f"{deploy} --parameter-overrides AssetsBucket=team-assets")
    assert json.loads(made.files[TEMPLATE])["Parameters"]["AssetsBucket"]["Default"] == "team-assets"
    assert len(made.files[TEMPLATE].splitlines()) > 1
    monkeypatch.setattr(export, "LARGEST_BODY_BYTES", 10_000)
    large = exported()
    assert large.commands[1] == (
        f"{deploy} --s3-bucket BUCKET --s3-prefix {STACK} --parameter-overrides AssetsBucket=BUCKET"
    )
    assert len(large.files[TEMPLATE].splitlines()) == 1, "one call carries more of it without spaces"


def test_a_bucket_with_its_account_is_replaced_whole(
    assembly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Exported
) -> None:
    bucket = "cdk-hnb659fds-assets-${AWS::AccountId}-us-east-1"
    known = bucket.replace("${AWS::AccountId}", "111122223333")
    part = {"a": [known, f"s3://{known}/${{x}}.tar.gz", "another"], "b": {"Fn::Sub": f"arn:${{P}}:{known}"}}
    template = {"Resources": {"A": {"Type": "AWS::SSM::Parameter", "Properties": part}}}
    (tmp_path / TEMPLATE).write_text(json.dumps(template))
    manifest = f"{STACK}.assets.json"
    (tmp_path / manifest).write_text((assembly / manifest).read_text().replace(bucket, known))
    shutil.copy(next(assembly.glob("asset.*.tar.gz")), tmp_path)
    monkeypatch.setattr(export, "synthesized_file", lambda *_: tmp_path / TEMPLATE)
    assert json.loads(exported().files[TEMPLATE])["Resources"]["A"]["Properties"] == {
        "a": [{"Ref": "AssetsBucket"}, {"Fn::Sub": "s3://${AssetsBucket}/${!x}.tar.gz"}, "another"],
        "b": {"Fn::Sub": "arn:${P}:${AssetsBucket}"},
    }


def problems_of(block: Mapping[str, Any], kind: str) -> list[str]:
    """Return what the provider's schema has against a block."""
    schema = TYPES[kind]
    wrong = [f"{kind} has no {name}" for name in block if name not in {*schema, *META}]
    wrong += [f"{kind} needs {name}" for name, type_ in schema.items() if type_.endswith("!") and name not in block]
    if {"template_body", "template_url"} <= block.keys():
        wrong.append("a template has one source")
    for name, value in block.items():
        type_, literal = schema.get(name, "").removesuffix("!"), not (isinstance(value, str) and "${" in value)
        if literal and {"map": dict, "list": list, "string": str}.get(type_, type(value)) is not type(value):
            wrong.append(f"{kind}.{name} is no {type_}")
    for timeouts in block.get("timeouts", ()):
        wrong += [
            f"no timeout {name}" for name in timeouts if name not in {*schema["timeouts"].split(), "__is_block__"}
        ]
    return wrong


def blocks(document: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return the blocks of a kind by their last label."""
    found: dict[str, Any] = {}
    for each in document.get(kind, ()):
        for label, inner in each.items():
            nested = kind in {"resource", "data"}
            found |= (
                {f"{label}.{name}".replace('"', ""): body for name, body in inner.items()}
                if nested
                else {label.strip('"'): inner}
            )
    return found


@pytest.mark.parametrize("largest_bytes", [export.LARGEST_BODY_BYTES, 10_000])
def test_the_module_fits_the_provider_and_its_own_variables(
    exported: Exported, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, largest_bytes: int
) -> None:
    monkeypatch.setattr(export, "LARGEST_BODY_BYTES", largest_bytes)
    is_large = largest_bytes < export.LARGEST_TEMPLATE_BYTES // 50
    made = texts(exported("terraform"))
    read = {name: hcl2.loads(text) for name, text in made.items() if name.endswith(".tf")}
    assert [*sorted(read)] == ["main.tf", "outputs.tf", "variables.tf", "versions.tf"]
    main, outputs = read["main.tf"], blocks(read["outputs.tf"], "output")
    resources, data = blocks(main, "resource"), blocks(main, "data")
    stack = resources["aws_cloudformation_stack.endpoint"]
    for name, block in {**resources, **data}.items():
        assert problems_of(block, name.partition(".")[0]) == []
    variables = blocks(read["variables.tf"], "variable")
    named = {word for text in made.values() for word in re.findall(r"\bvar\.(\w+)", text)}
    assert named == set(variables)
    assert all(each["type"] and each["description"] for each in variables.values())
    assert {name for name, each in variables.items() if "default" not in each} == {"assets_bucket"}
    assert {name for name, each in variables.items() if "validation" not in each} == {"tags"}
    template = json.loads(made[TEMPLATE])
    assert {name.replace("_", "") for name in outputs} == {"stackid", *(each.lower() for each in template["Outputs"])}
    assert [*stack["parameters"]] == [*template["Parameters"]]
    assert ("template_url" in stack, "template_body" in stack) == (is_large, not is_large)
    assert set(resources) == {
        "aws_cloudformation_stack.endpoint",
        "aws_s3_object.asset",
        *(["aws_s3_object.template"] if is_large else []),
    }
    if shutil.which("terraform") is not None:
        for name, text in made.items():
            (tmp_path / name).write_text(text)
        ended = terraform(tmp_path, "fmt", "-check", "-diff")
        assert (ended.returncode, ended.stdout) == (0, "")
        # Without the registry there is no provider to validate with; the schema above has what it would say.
        if terraform(tmp_path, "init", "-backend=false").returncode == 0:
            validated = terraform(tmp_path, "validate", "-no-color")
            assert validated.returncode == 0, validated.stdout


def terraform(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    (folder / "cli.rc").touch()
    program = shutil.which("terraform") or "terraform"
    env = {"PATH": os.environ["PATH"], "TF_CLI_CONFIG_FILE": f"{folder}/cli.rc", "HOME": f"{folder}"}
    return subprocess.run([program, *arguments], cwd=folder, env=env, capture_output=True, text=True, check=False)


def test_an_account_that_is_known_is_held_against_the_provider(
    assembly: Path, exported: Exported, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded = load_deployment(SPEC, ROOT / "environments", "dev")
    known = replace(loaded, environment=loaded.environment.model_copy(update={"account": "111122223333"}))
    monkeypatch.setattr(export, "load_deployment", lambda *_: known)
    main = hcl2.loads(texts(exported("terraform"))["main.tf"])
    checks = blocks(main, "resource")["aws_cloudformation_stack.endpoint"]["lifecycle"][0]["precondition"]
    assert [each["condition"] for each in checks] == [
        '${data.aws_region.current.id == "us-east-1"}',
        '${data.aws_caller_identity.current.account_id == "111122223333"}',
    ]


@pytest.mark.parametrize(
    "manifest",
    [{"dockerImages": {"x": {}}}, {"files": {"x": {"source": {"executable": ["make"]}, "destinations": {"y": {}}}}}],
    ids=["image", "program"],
)
def test_what_only_the_cdk_publishes_is_refused(
    assembly: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exported: Exported, manifest: dict[str, object]
) -> None:
    shutil.copy(assembly / TEMPLATE, tmp_path)
    (tmp_path / f"{STACK}.assets.json").write_text(json.dumps({"files": {}, **manifest}))
    monkeypatch.setattr(export, "synthesized_file", lambda *_: tmp_path / TEMPLATE)
    with pytest.raises(SpecError, match="SEA680"):
        exported()


def export_with(subject: str = "s for terraform", **files: str) -> Export:
    contents = {name.replace("__", "/").replace("_", "."): text.encode() for name, text in files.items()}
    return Export(subject, (), contents, ())


def test_an_export_replaces_an_earlier_one_and_nothing_else(tmp_path: Path) -> None:
    folder = tmp_path / "out"
    assert write_export(export_with(a_json="1", b_tf="x", assets__old_gz="o"), folder)[0] == folder / "a.json"
    (folder / "terraform.tfstate").write_text("state")
    write_export(export_with(a_json="2", assets__new_gz="n"), folder)
    left = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert left == {".seatrial-export.json", "a.json", "assets/new.gz", "terraform.tfstate"}
    assert (folder / "a.json").read_text() == "2"

    (folder / "a.json").write_text("edited")
    (folder / "c.tf").write_text("of a person")
    with pytest.raises(SpecError) as refused:
        write_export(export_with(a_json="3", c_tf="y"), folder)
    assert [each.place.where.rpartition("/")[2] for each in refused.value.problems] == ["a.json", "c.tf"]
    assert ((folder / "a.json").read_text(), (folder / "c.tf").read_text()) == ("edited", "of a person")


def test_an_interrupted_export_is_written_again_and_that_of_another_stack_is_kept(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    (tmp_path / "assets" / "new.gz").write_text("n")
    write_export(export_with(a_json="1", assets__new_gz="n"), tmp_path)
    for other in ("t for terraform", "s for cloudformation"):
        with pytest.raises(SpecError, match=f"SEA681: it holds the export of s for terraform, not of {other}"):
            write_export(export_with(other, b_json="1"), tmp_path)
    assert (tmp_path / "a.json").read_text() == "1"
    (tmp_path / "nowhere").symlink_to(tmp_path / "gone")
    with pytest.raises(SpecError, match="SEA681: it is no folder"):
        write_export(export_with(a_json="1"), tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../kept", "/kept", "assets/../../kept", ".git", "assets/x/../../../kept"])
def test_a_marker_that_leads_out_of_the_folder_removes_nothing(tmp_path: Path, name: str) -> None:
    folder, kept = tmp_path / "out", tmp_path / "kept"
    folder.mkdir()
    kept.write_text("kept")
    digest = hashlib.sha256(b"kept").hexdigest()
    (folder / ".seatrial-export.json").write_text(json.dumps({"export": "s for terraform", "files": {name: digest}}))
    with pytest.raises(SpecError, match="SEA681"):
        write_export(export_with(a_json="1"), folder)
    assert kept.read_text() == "kept"


def test_a_folder_of_others_and_a_file_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for folder in (tmp_path, tmp_path / "file"):
        with pytest.raises(SpecError, match="SEA681"):
            write_export(export_with(a_json="1"), folder)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
