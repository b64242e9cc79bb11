"""`cdk deploy` of one endpoint with its trial: the command, its output, and what is told of the trial meanwhile."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING

import pytest
import typer

from seatrial.account.trials import LiveTrial
from seatrial.cli.deploy import _View, _write_log, deploy_command
from seatrial.deployment.load import load_deployment
from seatrial.operations.app import deploy_command_of, run_app, run_cdk, trial_looked_at
from seatrial_base.errors import SeatrialError, SpecError
from tests.constructs.conftest import passing_result

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[2]
SPEC = ROOT / "endpoints" / "llama-2-7b-chat.yaml"
RESULT = passing_result()
SECRET = "hf_abcdefghijklmnopqrstuvwxyz01234567"
LOADING = LiveTrial(request_id="2", is_due=True, left_s=300.0, levels=RESULT.levels[:1], loading=16)
ENDED = LiveTrial(request_id="2", is_due=True, left_s=0.0, levels=RESULT.levels, result=RESULT)


def python(text: str) -> list[str]:
    return [sys.executable, "-c", text]


REFUSED = """
from aws_cdk import App, CfnResource, Stack
from seatrial_cdk.delivery.hosting_checks import HostingChecks
app = App(analytics_reporting=False)
HostingChecks.add_to(app)
for number in range(9):
    given = {"EndpointConfigName": f"chat{number}", "ProductionVariants": [{"VariantName": "All"}]}
    CfnResource(Stack(app, f"S{number}"), "Config", type="AWS::SageMaker::EndpointConfig", properties=given)
app.synth()
"""


def test_every_finding_of_the_synthesis_is_told_and_no_report_that_is_removed(tmp_path: Path) -> None:
    (tmp_path / "cdk.json").write_text('{"app": "python app.py"}')
    (tmp_path / "app.py").write_text(REFUSED)
    with pytest.raises(SeatrialError) as refused:
        run_app(tmp_path, {}, tmp_path / "scratch")
    assert all(f"chat{number} is a fixed name" in f"{refused.value}" for number in range(9))
    assert "validation-report.json" not in f"{refused.value}"
    assert "ValidationFailed" in f"{refused.value}"


class TestCommand:
    def test_it_deploys_the_stack_of_one_endpoint_and_asks_nothing(self) -> None:
        deployment = load_deployment(SPEC, ROOT / "environments", "dev")
        root, command = deploy_command_of(SPEC, ROOT / "environments", deployment)
        assert root.resolve() == ROOT
        assert command[1:3] == ["deploy", "seatrial-dev-llama-2-7b-chat"]
        assert command[3:7] == ["-c", "environment=dev", "-c", "endpoint=llama-2-7b-chat"]
        assert command[7:9] == ["--require-approval", "never"]

    def test_options_of_the_cdk_cli_are_passed_on_and_take_the_place_of_ours(self) -> None:
        deployment = load_deployment(SPEC, ROOT / "environments", "dev")
        more = ["--no-rollback", "--require-approval", "broadening"]
        _, command = deploy_command_of(SPEC, ROOT / "environments", deployment, more)
        assert command[-3:] == more
        assert command.count("--require-approval") == 1
        assert "--no-notices" in command

    def test_folders_that_are_not_those_of_the_app_are_named(self, tmp_path: Path) -> None:
        shutil.copytree(ROOT / "environments", tmp_path / "places")
        deployment = load_deployment(SPEC, tmp_path / "places", "dev")
        _, command = deploy_command_of(SPEC, tmp_path / "places", deployment)
        assert f"environments={tmp_path / 'places'}" in command

    def test_a_spec_outside_of_an_app_is_refused(self, tmp_path: Path) -> None:
        deployment = load_deployment(SPEC, ROOT / "environments", "dev")
        with pytest.raises(SpecError) as refused:
            deploy_command_of(tmp_path / "chat.yaml", tmp_path, deployment)
        assert [problem.rule for problem in refused.value.problems] == ["SEA450"]


class TestRun:
    def test_each_line_of_both_outputs_is_told_and_the_exit_code_returned(self, tmp_path: Path) -> None:
        told: list[str] = []
        text = "import sys; print('one', flush=True); print('two', file=sys.stderr); sys.exit(3)"
        assert run_cdk(python(text), tmp_path, told.append, os.environ) == 3
        assert told == ["one", "two"]

    def test_an_interrupt_ends_the_tool(self, tmp_path: Path) -> None:
        def interrupt(line: str) -> None:
            raise KeyboardInterrupt(line)

        text = "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)"
        with pytest.raises(KeyboardInterrupt) as interrupted:
            run_cdk(python(text), tmp_path, interrupt, os.environ)
        with pytest.raises(ProcessLookupError):
            os.kill(int(str(interrupted.value)), 0)


class TestTrial:
    def test_the_one_that_begins_is_told_at_each_look_and_once_more_at_the_end(self) -> None:
        looks: Iterator[LiveTrial | None] = iter([LiveTrial(request_id="1"), LiveTrial(request_id="1"), None, LOADING])
        told: list[LiveTrial] = []
        was_told = Event()

        def tell(seen: LiveTrial) -> None:
            told.append(seen)
            was_told.set()

        with trial_looked_at(lambda: next(looks, ENDED), tell, every_s=0.001):
            assert was_told.wait(60)
        assert (told[0], told[-1]) == (LOADING, ENDED)

    def test_where_nothing_can_be_read_nothing_is_told(self) -> None:
        told: list[LiveTrial] = []
        with trial_looked_at(lambda: None, told.append, every_s=0.001):
            pass
        assert told == []

    def test_plain_lines_in_a_pipeline(self, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
        view = _View("seatrial-dev-chat", None)
        view.line("seatrial-dev-chat | CREATE_IN_PROGRESS | Trial")
        view.trial(LOADING)
        view.trial(ENDED)
        view.trial(LiveTrial(request_id="3"))
        for line in ("seatrial-dev-chat | CREATE_COMPLETE", "❌  it failed", "‣ why", "", SECRET):
            view.line(line)
        lines = capsys.readouterr().out.splitlines()
        assert lines[0] == "seatrial-dev-chat | CREATE_IN_PROGRESS | Trial"
        assert lines[1] == "trial: the trial of seatrial-dev-chat"
        assert lines[2].startswith("trial: concurrency 8: 250")
        assert lines[3] == "trial: loading concurrency 16 per copy (5:00 min left)"
        assert (lines[-1], view.error) == ("seatrial-dev-chat | CREATE_COMPLETE", "it failed ‣ why")
        log = Path(f"{_write_log(tmp_path / 'new' / 's.log', view.kept)}")
        assert (log.stat().st_mode & 0o777, "❌" in log.read_text(), SECRET in log.read_text()) == (0o600, True, False)


class TestFolder:
    """Every endpoint by itself, from one synthesis, after what they share."""

    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        for name in ("endpoints", "environments"):
            shutil.copytree(ROOT / name, tmp_path / name)
        (tmp_path / "cdk.json").write_text('{"app": "python app.py"}')
        (tmp_path / "endpoints" / "falcon-40b.yaml").write_text("name: 5\n")
        command = tmp_path / "python"
        command.write_text(
            '#!/bin/sh\necho "$@" >> ran\necho begins\n'
            "case $* in *mixtral*) echo 'FAILED: its trial'; echo '  hint: look'; exit 10;; esac\necho DEPLOYED\n"
        )
        command.chmod(0o755)
        (tmp_path / "cdk").touch()
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr("sys.executable", str(command))
        monkeypatch.setattr("seatrial.operations.folder_deployment.run_app", self.synthesized)
        monkeypatch.setattr("seatrial.operations.folder_deployment.run_cdk", lambda *_: int("dev" in self.bad))
        return tmp_path

    bad: frozenset[str] = frozenset()

    @pytest.fixture
    def deploy(self, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, list[str]]]:
        def run(**given: object) -> tuple[int, list[str]]:
            try:
                deploy_command("endpoints", "dev", yes=True, **given)  # type: ignore[arg-type]
                code = 0
            except typer.Exit as ended:
                code = ended.exit_code
            return code, capsys.readouterr().out.splitlines()

        return run

    @staticmethod
    def synthesized(_root: Path, _context: dict[str, str], folder: Path) -> Path:
        (folder / "out").mkdir(parents=True)
        (folder / "out" / "seatrial-dev-trials.template.json").touch()
        return folder / "out"

    def test_one_that_fails_and_one_that_is_wrong_stop_no_other(
        self, folder: Path, deploy: Callable[..., tuple[int, list[str]]]
    ) -> None:
        code, lines = deploy(failures=Path("failed"))
        assert code == 50
        assert lines[-4:-2] == ["llama-2-7b-chat (0): DEPLOYED", "mixtral-8x7b (10): FAILED: its trial"]
        assert lines[-2].startswith("falcon-40b (2): endpoints/falcon-40b.yaml")
        assert lines[-1] == "1 of 3 endpoints of dev deployed; failed: mixtral-8x7b, falcon-40b"
        assert "mixtral-8x7b | begins" in lines
        assert (folder / "failed").read_text() == "mixtral-8x7b\nfalcon-40b\n"
        assert all("-- --app" in line and "--exclusively" in line for line in (folder / "ran").read_text().splitlines())

    def test_those_that_failed_before_are_left_out(
        self, folder: Path, deploy: Callable[..., tuple[int, list[str]]]
    ) -> None:
        code, lines = deploy(without="mixtral-8x7b falcon-40b unknown-here")
        assert (code, lines[-1]) == (0, "1 of 1 endpoint of dev deployed")
        assert "mixtral" not in (folder / "ran").read_text()

    def test_the_context_goes_to_the_synthesis_of_all(
        self, folder: Path, deploy: Callable[..., tuple[int, list[str]]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        contexts: list[dict[str, str]] = []

        def synthesized(root: Path, context: dict[str, str], folder: Path) -> Path:
            contexts.append(context)
            return self.synthesized(root, context, folder)

        monkeypatch.setattr("seatrial.operations.folder_deployment.run_app", synthesized)
        deploy(cdk_options=["--context", "rollback_alarms=off", "--no-rollback"])
        assert contexts[0]["rollback_alarms"] == "off"
        assert {"environment", "endpoints", "environments"} <= contexts[0].keys()
        assert "--no-rollback" in (folder / "ran").read_text()
        assert "--context" not in (folder / "ran").read_text()

    @pytest.mark.parametrize(
        ("given", "bad", "rule"),
        [
            ({"cdk_options": ["--app", "other"]}, set[str](), "SEA404"),
            ({"cdk_options": ["-c", "endpoint=chat"]}, set[str](), "SEA404"),
            ({"failures": Path("nowhere/failed")}, set[str](), "SEA101"),
            ({}, {"dev"}, "SEA609"),
        ],
    )
    def test_with_another_app_nowhere_to_write_or_without_what_they_share_none_is_begun(
        self,
        folder: Path,
        deploy: Callable[..., tuple[int, list[str]]],
        given: dict[str, object],
        bad: set[str],
        rule: str,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        monkeypatch.setattr(TestFolder, "bad", frozenset(bad))
        with pytest.raises(SeatrialError, match=rule):
            deploy(**{"failures": Path("failed"), **given})
        assert not any((folder / name).exists() for name in ("ran", "failed"))
