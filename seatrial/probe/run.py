"""Runs a probe: one deployment after the other in stacks of their own, or one level of an endpoint that serves.

A stack is deployed, its trial's result is read, and it is always deleted.
"""

from __future__ import annotations

import os
import signal
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from seatrial.account.live_endpoint import component_names, read_component, read_endpoint
from seatrial.account.reader import AwsReader, ClientCalls
from seatrial.account.trials import Bucket, describe_stack, fetch_result, look
from seatrial.deployment.document import service_stack
from seatrial.deployment.trial import trial_request
from seatrial.operations.app import app_root, app_variables, cdk_cli
from seatrial.probe.answer import probe_answer
from seatrial.probe.pinned import ProbedHardware
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.files import follow_links, hold_file_lock
from seatrial_base.findings import Finding, Place
from seatrial_laptop.demo.cdk_cli import CdkCli
from seatrial_laptop.demo.progress import shown_beside
from seatrial_laptop.demo.runner import ENDING, NO_TEMPLATE_VALIDATION
from seatrial_load.aws.deployment_check import asking
from seatrial_load.documents.request import Expected, TrialTarget
from seatrial_load.documents.request_checks import check_trial_request
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_sagemaker import SageMakerClient

    from seatrial.account.trials import LiveTrial
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.probe.pinned import PinnedSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_laptop.demo.cdk_cli import ToolOutcome
    from seatrial_laptop.demo.progress import Steps
    from seatrial_load.documents.progress import Watch
    from seatrial_load.documents.request import TrialRequest

_FOLDER = ".seatrial/probe"
RULE = "SEA525"
_LIVE_RULE = "SEA502"


def probe_folder(loaded: LoadedSpec) -> Path:
    """Return the folder of an endpoint's probe: in the CDK app's folder, else next to the spec."""
    return own_folder(loaded, _FOLDER)


def own_folder(loaded: LoadedSpec, kind: str) -> Path:
    """Return a folder of an endpoint's own files: below the CDK app's folder, else next to the spec."""
    root = app_root(loaded.path) or follow_links(loaded.path).parent
    return root / kind / f"{loaded.environment.name}-{loaded.endpoint.name}"


@contextmanager
def only_probe(folder: Path) -> Iterator[None]:
    """Keep every other probe of the endpoint out of a checkout for as long as this one lasts.

    Raises:
        SpecError: SEA525 when another one runs; SEA101 when the folder can't be written.
    """
    try:
        lock = hold_file_lock(folder.with_name(f"{folder.name}.lock"))
    except OSError as error:
        hint = "the probe needs write access to this folder"
        message = error.strerror or f"{error}"
        raise SpecError.of("SEA101", message, where=folder.parent.as_posix(), hint=hint) from error
    if lock is None:
        hint = "wait until it ends, or use another checkout"
        raise SpecError.of("SEA525", "another probe of this endpoint runs", where=folder.as_posix(), hint=hint)
    with lock:
        yield


@dataclass(frozen=True, slots=True)
class ProbeTools:
    """What the deployments of a probe are made with.

    Attributes:
        log: File that gets the output of the CDK CLI.
    """

    root: Path
    stacks: AwsStacks
    log: Path

    def run_of(self, pinned: PinnedSpec, *, verbose: bool, afterwards: Callable[[], None] = lambda: None) -> ProbeRun:
        """Return the run of one deployment; `afterwards` is called before its stack is deleted."""
        checks = NO_TEMPLATE_VALIDATION if pinned.loaded.environment.is_embedded else {}
        cdk = CdkCli(self.root, {**os.environ, **app_variables(self.root), **checks}, self.log, verbose)
        return ProbeRun(
            pinned=pinned,
            environments=pinned.environments,
            cdk=cdk,
            stacks=self.stacks,
            clock=time.monotonic,
            afterwards=afterwards,
        )

    def watcher(self, pinned: PinnedSpec) -> Callable[[float], LiveTrial | None]:
        """Return what looks at the trial of a deployment while it is deployed."""

        def look_at(now_s: float) -> LiveTrial | None:
            try:
                service = describe_stack(service_stack(pinned.loaded.environment.name), self.stacks.cloudformation)
                bucket = Bucket(self.stacks.s3, service.output("ResultsBucket"))
                return look(bucket, pinned.deployment.endpoint_name, now_s=now_s)
            except BenchError:
                return None

        return look_at


def check_tools(spec: Path) -> Path:
    """Return the folder of the CDK app.

    Raises:
        SpecError: SEA450 when there is none, SEA603 when the CDK CLI is not installed.
    """
    root = app_root(spec)
    if root is None:
        hint = "keep the spec below the folder of the CDK app"
        raise SpecError.of("SEA450", "no cdk.json in its folder or above", where=spec.as_posix(), hint=hint)
    cdk_cli(root)
    return root


def deploy_in_turn(pinned: Sequence[PinnedSpec], tools: ProbeTools, steps: Steps) -> Iterator[ProbeAnswer]:
    """Deploy, measure and delete one deployment after the other, and yield what was measured; a failure ends it.

    Raises:
        BenchError: As `ProbeRun.measure`.
    """
    for each in pinned:
        run = tools.run_of(each, verbose=steps.verbose)
        with steps.step(f"deploy, try and delete {run.stack_name}") as step:
            with shown_beside(tools.watcher(each), step):
                result, spent_s = run.measure()
            step.did(f"verdict: {result.verdict.status}")
        keep_probe_result(each, result)
        yield probe_answer(each, result, spent_s)


def measure_probe_level(request: TrialRequest, pinned: PinnedSpec, watched: Callable[..., TrialResult]) -> ProbeAnswer:
    """Load the one level of an endpoint that serves.

    Raises:
        BenchError: As `run_trial`.
    """

    def run(watch: Watch) -> TrialResult:
        result = run_trial(request, tools=replace(Tools(), watch=watch))
        if not isinstance(result, TrialResult):
            raise TypeError("a trial that never pauses has paused")
        return result

    result = watched(request, run)
    keep_probe_result(pinned, result)
    return probe_answer(pinned, result)


def result_path(pinned: PinnedSpec) -> Path:
    """Return where the result of a deployment is kept."""
    return pinned.loaded.path.with_suffix(".result.json")


def keep_probe_result(pinned: PinnedSpec, result: TrialResult) -> None:
    """Keep the result of a deployment next to its spec."""
    result_path(pinned).write_text(result.to_json(), encoding="utf-8")


class CdkCommands(Protocol):
    """Runs the CDK CLI in the repository."""

    def cdk(self, *arguments: str) -> ToolOutcome:
        """Run one command and return how it ended."""


class ProbeStacks(Protocol):
    """The calls that a probe makes on the stacks of an account."""

    def exists(self, name: str) -> bool:
        """Return whether there is a stack of a name."""

    def result(self, name: str) -> TrialResult:
        """Return the result of a stack's trial."""


@dataclass(frozen=True, slots=True)
class AwsStacks:
    """The stacks of one region."""

    cloudformation: CloudFormationClient
    s3: S3Client

    def exists(self, name: str) -> bool:
        """Return whether there is a stack of a name.

        Raises:
            BenchError: SEA502 when it isn't known; as `aws_failures` when AWS can't be read.
        """
        try:
            describe_stack(name, self.cloudformation)
        except BenchError as error:
            if "does not exist" in str(error):
                return False
            raise
        return True

    def result(self, name: str) -> TrialResult:
        """Return the result of a stack's trial.

        Raises:
            BenchError: SEA502 when the stack has none, SEA507 when the trial ended with an error.
        """
        return fetch_result(describe_stack(name, self.cloudformation).output("TrialResultUri"), self.s3)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """What one deployment of a probe is made with.

    Attributes:
        afterwards: Called when the trial is over, before the stack is deleted.
    """

    pinned: PinnedSpec
    environments: Path
    cdk: CdkCommands
    stacks: ProbeStacks
    clock: Callable[[], float]
    afterwards: Callable[[], None] = lambda: None

    @property
    def stack_name(self) -> str:
        """The stack of the deployment."""
        return self.pinned.deployment.stack_name

    @property
    def assembly(self) -> Path:
        """Where the CDK CLI synthesizes to."""
        return self.pinned.loaded.path.parent / "cdk.out"

    def measure(self) -> tuple[TrialResult, float]:
        """Deploy, read the trial's result, and delete the stack, whatever happened before.

        Returns:
            The result, and how long the instances were there at most, in seconds.

        Raises:
            BenchError: SEA525 when the stack is there already, or can't be deployed or deleted; SEA507 when its trial
                ended with an error.
        """
        if self.stacks.exists(self.stack_name):
            message = "the stack is there already: another probe runs, or one could not delete it"
            raise BenchError.of(RULE, message, where=self.stack_name, hint=self._by_hand())
        began_s, failure = self.clock(), BenchError(())
        try:
            result = self._deployed()
        except SeatrialError as error:
            failure = BenchError(error.problems)
            raise
        finally:
            # A second Ctrl-C must not end the deletion: instances that are left cost money.
            with uninterrupted():
                left = self._delete()
            if left:
                # What is left of the stack is reported with what failed before: the one must not hide the other.
                raise BenchError([*failure.problems, *left])
        return result, self.clock() - began_s

    def _deployed(self) -> TrialResult:
        ended = self.cdk.cdk(
            "deploy",
            self.stack_name,
            *("-c", f"environment={self.pinned.loaded.environment.name}"),
            *("-c", f"endpoints={follow_links(self.pinned.loaded.path.parent)}"),
            *("-c", f"environments={follow_links(self.environments)}"),
            *("--output", str(follow_links(self.assembly)), "--method", "direct", "--require-approval", "never"),
            *("--no-notices", "--progress", "events"),
        )
        if ended.exit_code:
            raise BenchError.of(RULE, f"cdk deploy failed: {ended.failure()}", where=self.stack_name)
        result = self.stacks.result(self.stack_name)
        self.afterwards()
        return result

    def _delete(self) -> list[Finding]:
        """Delete the stack; return what is wrong where it may be left. Before the synthesis ends there is none."""
        if not (self.assembly / "manifest.json").is_file():
            return []
        app = ("--app", str(follow_links(self.assembly)))
        try:
            ended = self.cdk.cdk("destroy", self.stack_name, "--exclusively", "--force", "--no-notices", *app)
            failure = f"cdk destroy failed: {ended.failure()}" if ended.exit_code else ""
        except OSError as error:
            failure = f"cdk destroy can't be started: {error.strerror}"
        if not failure:
            return []
        message = f"{failure}\nthe stack may still be there, and its instances cost money"
        return [Finding(RULE, Place.at(self.stack_name), message, self._by_hand())]

    def _by_hand(self) -> str:
        region = self.pinned.loaded.environment.region
        return f"delete it: aws cloudformation delete-stack --stack-name {self.stack_name} --region {region}"


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Let no signal interrupt what is done within, such as the deletion of a stack."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedEndpoint:
    """What serves under an endpoint's name."""

    endpoint_name: str
    component: str
    config_name: str
    model_name: str
    hardware: ProbedHardware


def read_live(sagemaker: SageMakerClient, endpoint_name: str, component: str | None) -> ProbedEndpoint:
    """Read what serves.

    Raises:
        BenchError: SEA502 when there is no such endpoint or component, or the component is not one of several, or
            names no model or no accelerators; as `aws_failures` when AWS can't be read.
    """
    where = f"endpoint {endpoint_name}"
    with asking(where):
        reader = AwsReader(ClientCalls(sagemaker), is_strict=True)
        endpoint = read_endpoint(endpoint_name, reader, with_tags=False)
        if endpoint.existence == "absent":
            raise BenchError.of(_LIVE_RULE, "there is no such endpoint", where=where)
        names = [component] if component else component_names(endpoint_name, reader)
        if not names:
            hint = "probe an endpoint that a Seatrial stack deployed"
            raise BenchError.of(_LIVE_RULE, "the endpoint has no inference component", where=where, hint=hint)
        if len(names) > 1:
            message, hint = f"the endpoint has {len(names)} inference components", ", ".join(names)
            raise BenchError.of(_LIVE_RULE, message, where=where, hint=f"give --component: {hint}")
        name = names[0]
        live = read_component(name, reader)
    if live is None:
        raise BenchError.of(_LIVE_RULE, f"there is no inference component {name}", where=where)
    if live.endpoint != endpoint_name:
        raise BenchError.of(_LIVE_RULE, f"component {name} is on endpoint {live.endpoint}", where=where)
    variant, accelerators = endpoint.variant(live.variant), live.accelerators or 0
    instance_type = variant.instance_type if variant else ""
    if not (live.model and instance_type and accelerators >= 1):
        message = f"component {name} has no model, instance type or number of accelerators"
        raise BenchError.of(_LIVE_RULE, message, where=where, hint="give a component that a Seatrial stack deployed")
    return ProbedEndpoint(
        endpoint_name=endpoint_name,
        component=name,
        config_name=endpoint.config,
        model_name=live.model,
        hardware=ProbedHardware(instance_type, round(accelerators)),
    )


def check_hardware(live: ProbedEndpoint, requested: ProbedHardware | None) -> None:
    """Refuse an endpoint that runs on other hardware than the requested candidate.

    Raises:
        BenchError: SEA502.
    """
    if requested is not None and requested != live.hardware:
        message = f"component {live.component} runs on {live.hardware}, not on {requested}"
        hint = "leave out --candidate, or give another endpoint"
        raise BenchError.of(_LIVE_RULE, message, where=f"endpoint {live.endpoint_name}", hint=hint)


def level_request(pinned: PinnedSpec, live: ProbedEndpoint) -> TrialRequest:
    """Return the trial of one level; before and after it, the model, its image and the configuration are proven.

    Raises:
        BenchError: SEA501 with every value that no trial can have.
    """
    serving = pinned.deployment.serving
    region = pinned.loaded.environment.region
    target = TrialTarget(endpoint_name=live.endpoint_name, inference_component=live.component, region=region)
    expected = Expected(endpoint_config_name=live.config_name, model_name=live.model_name, image=serving.image)
    request = trial_request(pinned.loaded, pinned.plan, serving, target, expected)
    check_trial_request(request)
    return request
