"""The scenario, chapter by chapter: every step checks that it did happen; what was started is stopped at the end."""

from __future__ import annotations

import os
import re
import shutil
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NoReturn

from rich.panel import Panel
from rich.table import Table

from seatrial.account.reader import aws_failures
from seatrial.deployment.load import load_deployment
from seatrial.engines.rendered import rendered_files
from seatrial.report.terminal.plan import plan_view
from seatrial.report.write import write_trial_report
from seatrial_base.errors import LocalError, PlanError
from seatrial_base.units import digits, exported, tenths
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.embedded_aws import EmbeddedAws
from seatrial_laptop.demo.progress import Steps, shown_beside
from seatrial_laptop.demo.workspace import (
    ENDPOINT,
    ENVIRONMENT,
    Workspace,
    check_machine,
    clear_scratch,
    disk_failures,
    only_demo,
    renew,
    workspace_of,
)
from seatrial_laptop.lifecycle import child_variables, start_embedded_aws, stop_embedded_aws
from seatrial_load.cli.show import knee_line

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path
    from types import FrameType

    from rich.console import Console

    from seatrial.documents.live import LiveStack
    from seatrial.documents.plan import Plan
    from seatrial_laptop.demo.cdk_cli import ToolOutcome
    from seatrial_laptop.demo.embedded_aws import Live
    from seatrial_laptop.demo.progress import Step
    from seatrial_load.documents.result import TrialResult


HINT = "run again with --verbose; logs: .seatrial/demo"


def expect(failure: str, actual: object, wanted: object) -> None:
    """Compare a value with the one that the scenario expects.

    Raises:
        LocalError: SEA606 with the failure and both values.
    """
    if actual != wanted:
        raise failed(f"{failure}: expected {wanted!r}, not {actual!r}")


def failed(failure: str) -> LocalError:
    """Return the error of a step that did not happen as described."""
    return LocalError.of("SEA606", failure, hint=HINT)


BATCH_LIMIT, SMALLER_BATCH_LIMIT = "max_num_seqs: 8", "max_num_seqs: 2"
MISSED = "ttft_ms p95"
SLO, IMPOSSIBLE_SLO = "ttft_ms: {p95: 1500}", "ttft_ms: {p95: 0.5}"


@dataclass(frozen=True, slots=True)
class Deployed:
    """One deployment that passed its trial."""

    plan: Plan
    stack: LiveStack
    live: Live
    result: TrialResult


@dataclass(frozen=True, slots=True)
class Scenario:
    """The chapters, and what they run with."""

    workspace: Workspace
    steps: Steps
    tools: CdkCli
    cloud: EmbeddedAws

    def plan(self) -> Plan:
        """Plan the endpoint, show why, lock it, and show what the container will read."""
        self.steps.chapter("1. Plan and serving configuration")
        with self.steps.step("seatrial plan --write") as step:
            plan = self.workspace.lock()
            step.did(f"{plan.instance_type.value}, plan {plan.digest}")
        self.steps.show(plan_view(plan, self.workspace.load()))
        deployment = load_deployment(self.workspace.spec, self.workspace.environments, ENVIRONMENT)
        for name, text in rendered_files(deployment.serving).items():
            self.steps.show(Panel(text.rstrip(), title=f"seatrial render: {name}", title_align="left", expand=False))
        return plan

    def first_deployment(self, plan: Plan) -> Deployed:
        """Bootstrap and deploy with the real CDK CLI; the custom resource puts the endpoint through its trial."""
        self.steps.chapter("2. First deployment with sea trial")
        region, account = self.cloud.local.region, self.cloud.local.account
        with self.steps.step("cdk bootstrap"):
            self.tools.cdk_must("bootstrap", f"aws://{account}/{region}", "--no-notices", folder=self.workspace.folder)
        with self.steps.step("cdk deploy, smoke benchmark included") as step:
            with self._trial_shown(step):
                self._must_deploy()
            deployed = self._deployed(plan)
            step.did(f"verdict: {deployed.result.verdict.status}")
        self._show_trial(deployed)
        return deployed

    def smaller_batch(self, first: Deployed) -> Deployed:
        """Deploy again with a smaller batch limit: an update in place, and a new trial."""
        self.steps.chapter(f"3. Update: {BATCH_LIMIT} becomes {SMALLER_BATCH_LIMIT}")
        with self.steps.step("seatrial plan --write") as step:
            self.workspace.edit(BATCH_LIMIT, SMALLER_BATCH_LIMIT)
            plan = self.workspace.lock()
            step.did(f"plan {plan.digest}")
        with self.steps.step("cdk deploy") as step:
            with self._trial_shown(step):
                self._must_deploy()
            second = self._deployed(plan)
            step.did(f"updated in place; verdict of the new trial: {second.result.verdict.status}")
        check_update(first, second)
        self._show_trial(second)
        return second

    def impossible_slo(self, second: Deployed) -> None:
        """Deploy an SLO that can't be met: the trial fails it, CloudFormation rolls back, the old one serves."""
        self.steps.chapter(f"4. Rollback: impossible SLO {IMPOSSIBLE_SLO}")
        with self.steps.step("seatrial plan refuses; --accept-slo-miss") as step:
            self.workspace.edit(SLO, IMPOSSIBLE_SLO)
            try:
                plan = self.workspace.lock()
            except PlanError as refused:
                refusal = refused.problems[0]
            else:
                raise failed(f"the planner accepted {IMPOSSIBLE_SLO} (plan {plan.digest})")
            expect("the planner refused the SLO with another rule", refusal.rule, "SEA205")
            step.did(refusal.message)
            self.workspace.lock(accept_slo_miss=True)
        with self.steps.step("cdk deploy fails, as expected") as step:
            with self._trial_shown(step):
                outcome = self._deploy()
            check_refused(outcome)
            match = re.search(rf"{MISSED} .*? per copy", outcome.output)
            step.did(match[0] if match else "")
        with self.steps.step("the old configuration answers") as step:
            stack = self.cloud.stack(self._stack_name)
            expect("the stack was not rolled back", stack.status, "UPDATE_ROLLBACK_COMPLETE")
            live = self.cloud.live(second.stack.output("InferenceComponentName"))
            expect("another model is live after the rollback", live.model_name, second.live.model_name)
            expect("the rollback changed the autoscaling target", live.target, second.live.target)
            text = self.cloud.ask(stack.output("EndpointName"), stack.output("InferenceComponentName"))
            step.did(f"{stack.status}, model {live.model_name} answers {text!r}")

    def destroy(self) -> None:
        """Destroy the stack and prove that nothing is left."""
        self.steps.chapter("5. Destroy")
        with self.steps.step("cdk destroy") as step:
            self.tools.cdk_must("destroy", "--force", "--no-notices", "--app", str(self.workspace.assembly), "--all")
            expect("cdk destroy left resources", self.cloud.leftovers(f"seatrial-{ENVIRONMENT}"), [])
            step.did("no resources left")

    @property
    def _stack_name(self) -> str:
        return f"seatrial-{ENVIRONMENT}-{ENDPOINT}"

    def _trial_shown(self, step: Step) -> AbstractContextManager[None]:
        return shown_beside(self.cloud.watcher(ENVIRONMENT, f"{ENVIRONMENT}-{ENDPOINT}"), step)

    def _deploy(self) -> ToolOutcome:
        shutil.rmtree(self.workspace.assembly, ignore_errors=True)
        context = {
            "environment": ENVIRONMENT,
            "endpoints": str(self.workspace.spec.parent),
            "environments": str(self.workspace.environments),
        }
        arguments = [word for name, value in context.items() for word in ("-c", f"{name}={value}")]
        arguments += ["--output", str(self.workspace.assembly), "--require-approval", "never", "--no-notices"]
        return self.tools.cdk("deploy", "--all", "--method", "direct", *arguments, "--progress", "events")

    def _must_deploy(self) -> None:
        self.tools.must("deploy", self._deploy())

    def _deployed(self, plan: Plan) -> Deployed:
        stack = self.cloud.stack(self._stack_name)
        result = self.cloud.result(stack.output("TrialResultUri"))
        live = self.cloud.live(stack.output("InferenceComponentName"))
        deployed = Deployed(plan, stack, live, result)
        check_deployment(deployed)
        return deployed

    def _show_trial(self, deployed: Deployed) -> None:
        result = deployed.result
        self.steps.show(f"measured on {result.engine_note}")
        table = Table("concurrency", "tok/s", "TTFT p95", "TPOT p95", "SLO")
        for level in result.levels:
            speed = "–" if level.output_tok_s is None else digits(level.output_tok_s)
            measured = (level.ttft_ms, level.tpot_ms)
            latencies = ("–" if times is None else f"{tenths(times.p95, grouped=True)} ms" for times in measured)
            table.add_row(str(level.concurrency), speed, *latencies, "met" if level.meets_slo else "missed")
        self.steps.show(table)
        self.steps.show(knee_line(result))
        target = exported(result.target_concurrency_per_copy)
        self.steps.show(f"autoscaling target {target} per copy: {result.target_because}")
        folder = self.workspace.folder / "reports" / deployed.plan.digest
        self.steps.show(f"report: {write_trial_report(result, deployed.plan, folder).html}")


def check_deployment(deployed: Deployed) -> None:
    """Check that the trial was of the plan and passed, and that scaling tracks its result."""
    result = deployed.result
    expect("the result is of another plan", result.request.plan_digest, deployed.plan.digest)
    expect(f"the trial did not pass ({result.verdict.because})", result.verdict.status, "pass")
    expect("the autoscaling target is not the trial's", deployed.live.target, result.target_concurrency_per_copy)


def check_update(first: Deployed, second: Deployed) -> None:
    """Check that an update kept the component, changed its model, and was put through a trial of its own."""
    expect("the update replaced the component; creation time", second.live.created, first.live.created)
    if second.live.model_name == first.live.model_name:
        raise failed(f"the update changed nothing: model {first.live.model_name} is still live")
    uri = second.stack.output("TrialResultUri")
    if uri == first.stack.output("TrialResultUri"):
        raise failed(f"the update had no trial: the result is still {uri}")


def check_refused(outcome: ToolOutcome) -> None:
    """Check that a deployment failed because its trial missed the objective."""
    if outcome.exit_code == 0:
        raise failed(f"cdk deploy ended with exit code 0, although {IMPOSSIBLE_SLO} can't be met")
    if MISSED not in outcome.output:
        raise failed(f"cdk deploy failed, but not with {MISSED}: {outcome.failure()}")


ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
STANDARD_OUTPUTS: Final = (1, 2)

NO_TEMPLATE_VALIDATION = {"CDK_VALIDATION": "false"}
"""For the CDK: its own check of a template takes half of a synthesis, and the tests check the demo's templates."""


def end_on_signals() -> None:
    """Let Ctrl-C, a termination and a closed terminal end the demo as an exception, so that it stops what it started.

    A shell starts a job in the background with Ctrl-C ignored: that is undone. `nohup` ignores SIGHUP on purpose.
    """
    for number in ENDING:
        if number != signal.SIGHUP or signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _end_by_signal)


def ignore_signals() -> None:
    """Let nothing interrupt what follows, such as the end of everything that was started."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)


def _end_by_signal(number: int, _frame: FrameType | None) -> NoReturn:
    """End by the first signal; a second one may not hinder what is undone then."""
    ignore_signals()
    if number == signal.SIGHUP:
        # Write to no terminal any more: it is closed, and each write would fail.
        with open(os.devnull, "wb") as nothing:  # noqa: PTH123 (a device, not a path)
            for output in STANDARD_OUTPUTS:
                if os.isatty(output):
                    os.dup2(nothing.fileno(), output)
    sys.exit(128 + number)


def run_demo(root: Path, console: Console, *, verbose: bool) -> None:
    """Run the whole scenario in a checkout of the repository.

    Raises:
        LocalError: SEA601 to SEA606 when a step did not happen; SEA611 when another demo runs in the checkout;
            SEA612 when a folder can't be written.
        BenchError: SEA504 when the embedded AWS doesn't answer.
        SystemExit: After Ctrl-C, a termination or a closed terminal, when everything is stopped: 128 + the signal.
    """
    began_s = time.monotonic()
    end_on_signals()
    steps = Steps(console, verbose=verbose)
    workspace = workspace_of(root)
    with only_demo(workspace):
        check_machine(workspace)
        renew(workspace)
        try:
            with (
                disk_failures(workspace.folder),
                aws_failures("the embedded AWS", lambda error: failed(f"the embedded AWS refused a call: {error}")),
            ):
                with steps.step("start the embedded AWS") as step:
                    local = start_embedded_aws(state_dir=workspace.aws)
                    step.did(f"{local.endpoint_url}, account {local.account}, this machine only")
                env = {**child_variables(local), "TMPDIR": str(workspace.scratch), **NO_TEMPLATE_VALIDATION}
                tools = CdkCli(workspace.root, env, workspace.folder / "tools.log", steps.verbose)
                scenario = Scenario(workspace, steps, tools, EmbeddedAws(local))
                first = scenario.first_deployment(scenario.plan())
                second = scenario.smaller_batch(first)
                scenario.impossible_slo(second)
                scenario.destroy()
        finally:
            # Everything is stopped before it is shown: neither a second Ctrl-C nor a closed terminal may hinder it.
            ignore_signals()
            ending_s = time.monotonic()
            stopped = stop_embedded_aws(workspace.aws)
            clear_scratch(workspace)
            if stopped:
                steps.done("stop the embedded AWS and its engines", ending_s)
    console.print(f"\n[bold green]Finished in {time.monotonic() - began_s:.0f} s.[/]")
