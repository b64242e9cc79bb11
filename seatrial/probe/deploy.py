"""Deploys one deployment of a probe in a stack of its own, reads its trial's result, and always deletes the stack."""

from __future__ import annotations

import signal
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from seatrial.account.trials import describe_stack, fetch_result
from seatrial_base.errors import BenchError, SeatrialError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place
from seatrial_laptop.demo.runner import ENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

    from seatrial.probe.pinned import PinnedSpec
    from seatrial_laptop.demo.cdk_cli import ToolOutcome
    from seatrial_load.documents.result import TrialResult

RULE = "SEA525"


class CdkCommands(Protocol):
    """Runs the CDK CLI in the repository."""

    def cdk(self, *arguments: str) -> ToolOutcome:
        """Run one command and return how it ended."""


class ProbeStacks(Protocol):
    """What is asked of the stacks of an account."""

    def exists(self, name: str) -> bool:
        """Tell whether there is a stack of a name."""

    def result(self, name: str) -> TrialResult:
        """Return the result of a stack's trial."""


@dataclass(frozen=True, slots=True)
class AwsStacks:
    """The stacks of one region."""

    cloudformation: CloudFormationClient
    s3: S3Client

    def exists(self, name: str) -> bool:
        """Tell whether there is a stack of a name.

        Raises:
            BenchError: SEA502 when it can't be told; as `aws_failures` when AWS can't be asked.
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


def _nothing() -> None:
    """Do nothing more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRun:
    """What one deployment of a probe is made with.

    Attributes:
        pinned: What is deployed.
        environments: Folder of environments.
        cdk: The CDK CLI.
        stacks: The stacks of the account.
        clock: Seconds, from any beginning.
        afterwards: Called when the trial is over, before the stack is deleted.
    """

    pinned: PinnedSpec
    environments: Path
    cdk: CdkCommands
    stacks: ProbeStacks
    clock: Callable[[], float]
    afterwards: Callable[[], None] = _nothing

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
            with uninterrupted():
                left = self._delete()
            if left:
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
