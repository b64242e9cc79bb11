from __future__ import annotations

import json
import runpy
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk
import pytest

import seatrial.deployment.load
from seatrial.deployment.load import LockedDeployments
from seatrial.operations.app import app_variables
from seatrial_base.errors import SpecError
from seatrial_stacks import app_stacks

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

ROOT = Path(__file__).parents[2]


def run_app(monkeypatch: pytest.MonkeyPatch, folder: Path, context: dict[str, object]) -> None:
    monkeypatch.setattr(aws_cdk, "App", partial(aws_cdk.App, outdir=str(folder / "cdk.out"), context=context))
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")


def test_a_stack_to_destroy_is_defined_whatever_the_specs_say(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    run_app(monkeypatch, tmp_path, {"destroy": "seatrial-dev-chat", "environment": "dev", "endpoints": str(tmp_path)})
    written = json.loads((tmp_path / "cdk.out" / "seatrial-dev-chat.template.json").read_text())
    assert written["Resources"].keys() == {"CDKMetadata"}
    # A parameter without a value: `cdk deploy` would empty the live stack, without a question.
    assert "Default" not in written["Parameters"]["ForCdkDestroyAlone"]


@pytest.mark.parametrize("name", ["*", "seatrial-*", "a b", "1st", "x" * 129])
def test_only_the_name_of_a_stack_is_destroyed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_app(monkeypatch, tmp_path, {"destroy": name})
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith(f"SEA404: the context value `destroy` is {name!r}, not the name of one s")


def test_exclusively_selected_endpoints_alone_are_defined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    environments = shutil.copytree(ROOT / "environments", tmp_path / "environments")
    with (environments / "dev.yaml").open("a", encoding="utf-8") as file:
        file.write("observability: {dashboards: environment}\n")
    context: dict[str, object] = {"environment": "dev", "environments": f"{environments}"}
    run_app(monkeypatch, tmp_path, {**context, "aws:cdk:bundling-stacks": ["seatrial-dev-mi*"]})
    stacks = {path.name.partition(".")[0] for path in (tmp_path / "cdk.out").glob("*.template.json")}
    assert stacks == {"seatrial-dev-mixtral-8x7b", "seatrial-dev-trials"}
    shared = (tmp_path / "cdk.out" / "seatrial-dev-trials.template.json").read_text()
    assert all(f"dev-{name}" in shared for name in ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b")), "the dashboard"


@pytest.mark.parametrize("pattern", ["**", "seatrial-{dev,prod}-mixtral-8x7b", "+(seatrial)-dev-mixtral-8x7b", None])
def test_a_pattern_that_python_has_not_leaves_nothing_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, pattern: str | None
) -> None:
    passed: list[tuple[str, ...]] = []

    def add_stacks(*_: object, selected: tuple[str, ...]) -> dict[str, object]:
        passed.append(selected)
        return {}

    monkeypatch.setattr(app_stacks, "add_stacks", add_stacks)
    named = {} if pattern is None else {"aws:cdk:bundling-stacks": [pattern]}
    app_stacks.define_stacks(aws_cdk.App(outdir=str(tmp_path), context={"environment": "dev", **named}))
    assert passed in ([("*",)], [("**",)])


def test_without_an_environment_every_one_but_the_embedded_aws_is_defined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for folder in ("endpoints", "environments"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    context: dict[str, object] = {folder: str(tmp_path / folder) for folder in ("endpoints", "environments")}
    accounts = {"dev": "111111111111", "prod": "222222222222"}
    for name, account in accounts.items():
        file = tmp_path / "environments" / f"{name}.yaml"
        file.write_text(f'{file.read_text(encoding="utf-8")}account: "{account}"\n', encoding="utf-8")
    lock = tmp_path / "endpoints" / "falcon-40b.lock.json"
    document = json.loads(lock.read_text(encoding="utf-8"))
    del document["environments"]["prod"]
    lock.write_text(json.dumps(document), encoding="utf-8")
    run_app(monkeypatch, tmp_path, context)
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stacks = {name: each for name, each in manifest["artifacts"].items() if each["type"] == "aws:cloudformation:stack"}
    assert sorted(stacks) == [
        "seatrial-dev-falcon-40b",
        "seatrial-dev-llama-2-7b-chat",
        "seatrial-dev-mixtral-8x7b",
        "seatrial-dev-trials",
        "seatrial-prod-llama-2-7b-chat",
        "seatrial-prod-mixtral-8x7b",
        "seatrial-prod-trials",
    ]
    assert {each["displayName"] for each in stacks.values()} == set(stacks)
    assert {name.split("-")[1]: each["environment"] for name, each in stacks.items()} == {
        name: f"aws://{account}/us-east-1" for name, account in accounts.items()
    }
    assert capsys.readouterr().err == (
        "note: local (embedded AWS) is skipped; select it with -c environment=local\n"
        f"note: prod: skipped without a lock: falcon-40b (lock with `seatrial plan "
        f"{tmp_path}/endpoints/falcon-40b.yaml --environment prod --write`)\n"
    )


@pytest.mark.parametrize(
    ("context", "file", "text"),
    [
        ({}, "falcon-40b.yaml", "name: 5\n"),
        ({"environment": "dev"}, "falcon-40b.lock.json", "{}"),
        ({"environment": "dev"}, "my_model v1.yaml", "name: 5\n"),
        ({"environment": "dev"}, "trials.yaml", "name: 5\n"),
    ],
)
def test_the_others_are_synthesized_and_what_is_wrong_cannot_be_deployed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, context: dict[str, object], file: str, text: str
) -> None:
    for folder in ("endpoints", "environments"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    (tmp_path / "endpoints" / file).write_text(text, encoding="utf-8")
    monkeypatch.setenv("CDK_VALIDATION", "true")
    run_app(
        monkeypatch, tmp_path, {**context, **{name: str(tmp_path / name) for name in ("endpoints", "environments")}}
    )
    out = tmp_path / "cdk.out"
    wrong = {"my_model v1.yaml": "my-model-v1", "trials.yaml": "trials-spec"}.get(file, "falcon-40b")
    broken = json.loads((out / f"seatrial-dev-{wrong}.template.json").read_text())
    assert broken["Resources"].keys() == {"CDKMetadata"}
    assert "Default" not in broken["Parameters"]["ForCdkDestroyAlone"]
    metadata = json.loads((out / f"seatrial-dev-{wrong}.metadata.json").read_text())[f"/seatrial-dev-{wrong}"]
    (error,) = (entry["data"] for entry in metadata if entry["type"] == "aws:cdk:error")
    assert error.startswith(f"{tmp_path}/endpoints/{file}")
    name = "seatrial-dev-llama-2-7b-chat"
    assert "AWS::SageMaker::Endpoint" in (out / f"{name}.template.json").read_text()
    if context and wrong != "falcon-40b":
        return  # the CDK CLI takes its seconds, and is the same for each
    command = [str(Path(sys.executable).parent / "cdk"), "synth", "--quiet", "--no-notices", "--app", str(out)]
    for stacks, exit_code in (((name,), 0), ((), 1)):
        ended = subprocess.run(
            [*command, *stacks], env=app_variables(ROOT), capture_output=True, text=True, check=False
        )
        assert (ended.returncode, error.splitlines()[0] in ended.stderr) == (exit_code, bool(exit_code))


def test_a_template_is_the_same_whatever_else_is_defined(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folders: dict[str, object] = {name: str(ROOT / name) for name in ("endpoints", "environments")}
    everything, alone = tmp_path / "everything", tmp_path / "alone"
    run_app(monkeypatch, everything, {**folders, "endpoint": "llama-2-7b-chat"})
    run_app(monkeypatch, alone, {**folders, "endpoint": "llama-2-7b-chat", "environment": "dev"})
    name = "cdk.out/seatrial-dev-llama-2-7b-chat.template.json"
    assert (everything / name).read_bytes() == (alone / name).read_bytes()


@pytest.mark.parametrize(
    ("name", "value", "shown"),
    [("endpoint", 5, "5"), ("environment", {"name": "dev"}, "{'name': 'dev'}"), ("endpoints", True, "True")],
)
def test_a_context_value_that_is_no_text_is_refused(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    name: str,
    value: object,
    shown: str,
) -> None:
    with pytest.raises(SystemExit) as ended:
        run_app(monkeypatch, tmp_path, {"environment": "dev", name: value})
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        f"SEA404: the context value `{name}` is {shown}, not a string\n  hint: give it as `-c {name}=TEXT`\n"
    )


def test_a_refused_spec_is_printed_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object, **__: object) -> LockedDeployments:
        raise SpecError.of("SEA401", "there is no lock", where="endpoints/chat.yaml")

    monkeypatch.setattr(seatrial.deployment.load, "load_deployments", refuse)
    with pytest.raises(SystemExit) as ended:
        run_app(monkeypatch, tmp_path, {"environment": "dev"})
    assert ended.value.code == 2
    assert capsys.readouterr().err == "endpoints/chat.yaml: SEA401: there is no lock\n"


def test_every_endpoint_of_the_named_environment_gets_a_stack(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dev_deployment: Deployment
) -> None:
    asked: list[tuple[object, ...]] = []

    def load(*arguments: object, **_: object) -> LockedDeployments:
        asked.append(arguments)
        return LockedDeployments((dev_deployment,), ())

    monkeypatch.setattr(seatrial.deployment.load, "load_deployments", load)
    run_app(monkeypatch, tmp_path, {"environment": "dev", "endpoint": "chat", "endpoints": "specs"})
    assert asked == [(Path("specs"), Path("environments"), "dev", "chat")]
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stack = manifest["artifacts"]["seatrial-dev-chat"]
    assert stack["environment"] == "aws://unknown-account/us-east-1"
