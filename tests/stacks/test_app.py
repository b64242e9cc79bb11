from __future__ import annotations

import json
import runpy
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import aws_cdk
import pytest

import seatrial.deployment.load
from seatrial.errors import SpecError

if TYPE_CHECKING:
    from seatrial.deployment.document import Deployment

ROOT = Path(__file__).parents[2]


def run_app(monkeypatch: pytest.MonkeyPatch, folder: Path, context: dict[str, object]) -> None:
    monkeypatch.setattr(aws_cdk, "App", partial(aws_cdk.App, outdir=str(folder / "cdk.out"), context=context))
    runpy.run_path(str(ROOT / "app.py"), run_name="__main__")


def test_without_an_environment_the_known_ones_are_named(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("prod", "dev"):
        (tmp_path / f"{name}.yaml").touch()
    with pytest.raises(SystemExit) as ended:
        run_app(monkeypatch, tmp_path, {"environments": str(tmp_path)})
    assert ended.value.code == 2
    assert capsys.readouterr().err == (
        "SEA404: no environment is named\n  hint: add `-c environment=NAME`; known: dev, prod\n"
    )


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
        f"SEA404: the context value `{name}` is {shown}, not a text\n  hint: give it as `-c {name}=TEXT`\n"
    )


def test_a_refused_spec_is_printed_without_a_traceback(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> tuple[Deployment, ...]:
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

    def load(*arguments: object) -> tuple[Deployment, ...]:
        asked.append(arguments)
        return (dev_deployment,)

    monkeypatch.setattr(seatrial.deployment.load, "load_deployments", load)
    run_app(monkeypatch, tmp_path, {"environment": "dev", "endpoint": "chat", "endpoints": "specs"})
    assert asked == [(Path("specs"), Path("environments"), "dev", "chat")]
    manifest = json.loads((tmp_path / "cdk.out" / "manifest.json").read_text())
    stack = manifest["artifacts"]["seatrial-dev-chat"]
    assert stack["environment"] == "aws://unknown-account/us-east-1"
