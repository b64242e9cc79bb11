"""Runs a probe: one deployment after the other in stacks of their own, or one level of an endpoint that serves."""

from __future__ import annotations

import os
import time
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from seatrial.account.trials import Bucket, describe_stack, look
from seatrial.deployment.document import service_stack
from seatrial.operations.app import app_root, app_variables
from seatrial.probe.answer import probe_answer
from seatrial.probe.deploy import AwsStacks, ProbeRun
from seatrial_base.errors import BenchError, SpecError
from seatrial_base.file_lock import hold_file_lock
from seatrial_base.files import follow_links
from seatrial_laptop.demo.cdk_cli import CdkCli, cdk_path
from seatrial_laptop.demo.progress import shown_beside
from seatrial_laptop.demo.runner import NO_TEMPLATE_VALIDATION
from seatrial_load.documents.result import TrialResult
from seatrial_load.trial.dependencies import Tools
from seatrial_load.trial.run import run_trial

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from seatrial.account.trials import LiveTrial
    from seatrial.probe.answer import ProbeAnswer
    from seatrial.probe.pinned import PinnedSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_laptop.demo.progress import Steps
    from seatrial_load.documents.request import TrialRequest
    from seatrial_load.trial.events import Watch

_FOLDER = ".seatrial/probe"


def probe_folder(loaded: LoadedSpec) -> Path:
    """Return where the files of an endpoint's probe lie: in the CDK app's folder, else beside the spec."""
    return own_folder(loaded, _FOLDER)


def own_folder(loaded: LoadedSpec, kind: str) -> Path:
    """Return a folder of an endpoint's own files: below the CDK app's folder, else beside the spec.

    Args:
        loaded: The spec in its environment.
        kind: Which files, as a relative path.
    """
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
        root: Folder of the CDK app.
        stacks: The stacks of the account.
        log: File that gets the output of the CDK CLI.
    """

    root: Path
    stacks: AwsStacks
    log: Path

    def run_of(self, pinned: PinnedSpec, *, verbose: bool, afterwards: Callable[[], None] | None = None) -> ProbeRun:
        """Return the run of one deployment; `afterwards` is called before its stack is deleted."""
        checks = NO_TEMPLATE_VALIDATION if pinned.loaded.environment.is_embedded else {}
        cdk = CdkCli(self.root, {**os.environ, **app_variables(self.root), **checks}, self.log, verbose)
        run = ProbeRun(
            pinned=pinned, environments=pinned.environments, cdk=cdk, stacks=self.stacks, clock=time.monotonic
        )
        return run if afterwards is None else replace(run, afterwards=afterwards)

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
    if not cdk_path().is_file():
        hint = "install it with: make install"
        raise SpecError.of("SEA603", "the CDK CLI is not installed", where=str(cdk_path()), hint=hint)
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

    Args:
        request: The trial.
        pinned: The deployment that serves.
        watched: Runs the trial and shows it.

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
    """Keep the result of a deployment beside its spec."""
    result_path(pinned).write_text(result.to_json(), encoding="utf-8")
