"""What the suite runs against: the embedded AWS or an account, with the tools of a user and everything written down.

This module and `conftest.py` alone import Seatrial's own code: to start the embedded AWS, to change its clock and to
synthesize in this process. The cases know boto3, the CDK CLI and `seatrial`.
"""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_laptop.control import change_control, reset_control
from tests.acceptance.account.removal import RUN_TAG
from tests.tools import BIN, ROOT, run_to_end

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    import boto3

    from tests.acceptance.transcript.recorder import Recorder
    from tests.tools import Ended

MOST_LOOKS: Final = 40
Client = Any  # boto3's clients have no type of their own that a service's name chooses


class RunSeatrial(Protocol):
    """Runs `seatrial` to its end."""

    def __call__(self, *words: str, folder: Path, variables: Mapping[str, str]) -> Ended: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What the suite runs against.

    Attributes:
        environment: Name of the environment; stacks, endpoints and parameters begin with it.
        region: Region.
        folder: Specs and environments of the run.
        variables: Environment variables of the tools.
        session: Makes boto3's clients; their calls are recorded.
        endpoint_url: Where the embedded AWS listens; None for an account.
        recorder: Writes the transcript.
        seatrial_command: Runs `seatrial`.
        state: The embedded AWS's folder; None for an account.
        patience_s: How long anything is waited for.
        look_s: Between two looks at it.
        run_id: ID of the run, the value of `RUN_TAG`.
    """

    environment: str
    region: str
    folder: Path
    variables: Mapping[str, str]
    session: boto3.Session
    endpoint_url: str | None
    recorder: Recorder
    seatrial_command: RunSeatrial
    state: Path | None
    patience_s: float
    look_s: float
    run_id: str
    _clients: dict[str, Client] = field(default_factory=dict)
    _settings: dict[str, object] = field(default_factory=dict)

    @property
    def is_embedded(self) -> bool:
        """Whether it is the embedded AWS, whose clock and faults can be set."""
        return self.state is not None

    @property
    def tags(self) -> list[dict[str, str]]:
        """The tag of what is made without the CDK, by which the removal finds it."""
        return [{"Key": RUN_TAG, "Value": self.run_id or "embedded"}]

    def client(self, service: str) -> Client:
        """Return the client of a service, one for every thread."""
        if service not in self._clients:
            make: Callable[..., Client] = self.session.client
            self._clients[service] = make(service, region_name=self.region, endpoint_url=self.endpoint_url)
        return self._clients[service]

    def session_of(self, key: Mapping[str, str]) -> Callable[[str], Client]:
        """Return the maker of clients with another access key, recorded as the others."""
        import boto3  # noqa: PLC0415 (the suite's own session is made by its fixture)

        session = boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], key.get("SessionToken"))
        self.recorder.watch(session.events)
        make: Callable[..., Client] = session.client
        return lambda service: make(service, region_name=self.region, endpoint_url=self.endpoint_url)

    def seatrial(self, *words: str) -> Ended:
        """Run `seatrial` in the folder of the run."""
        began_s = time.monotonic()
        ended = self.seatrial_command(*words, folder=self.folder, variables=self.variables)
        self.recorder.tool(["seatrial", *words], began_s, ended.exit_code, ended.output)
        return ended

    def cdk(self, *words: str | Path, folder: Path = ROOT) -> Ended:
        """Run the CDK CLI, in the repository if no other folder is given."""
        began_s = time.monotonic()
        command = (BIN / "cdk", *words, "--no-notices")
        ended = run_to_end(*command, folder=folder, env=self.variables, longest_s=self.patience_s * 4)
        self.recorder.tool(["cdk", *words], began_s, ended.exit_code, ended.output)
        return ended

    def synth(self, assembly: str, **context: str | Path) -> Path:
        """Synthesize what is locked; on the embedded AWS in this process, which takes a seventh of the CLI's time."""
        given: dict[str, str | Path] = {
            "environment": self.environment,
            "endpoints": self.folder / "endpoints",
            "environments": self.folder / "environments",
            **context,
        }
        output = self.folder / assembly
        if self.is_embedded:
            return synthesize(output, given)
        words = (word for name, value in given.items() for word in ("-c", f"{name}={value}"))
        ended = self.cdk("synth", "--quiet", "--output", output, *words)
        assert ended.exit_code == 0, ended.last_lines
        return output

    def deploy(self, assembly: Path, *stacks: str) -> Ended:
        """Deploy stacks of an assembly, all without names, and record their events.

        An environment's tags are those of resources: stacks get the run's tag here, by which the removal finds them.
        """
        options = ("--require-approval", "never", "--progress", "events", "--method", "direct")
        tags = ("--tags", f"{RUN_TAG}={self.run_id}") if self.run_id else ()
        ended = self.cdk("deploy", *(stacks or ("--all",)), "--app", assembly, *options, *tags)
        for stack in self.stacks():
            self.record_events(stack)
        return ended

    def destroy(self, assembly: Path) -> None:
        """Destroy every stack of an assembly, with the CDK."""
        ended = self.cdk("destroy", "--all", "--force", "--app", assembly)
        assert ended.exit_code == 0, ended.last_lines

    def stacks(self) -> list[str]:
        """Return the names of the environment's stacks."""
        pages = self.client("cloudformation").get_paginator("describe_stacks").paginate()
        every = (stack["StackName"] for page in pages for stack in page["Stacks"])
        return sorted(name for name in every if name.startswith(f"seatrial-{self.environment}-"))

    def record_events(self, stack: str) -> None:
        """Write the events of a stack that are not in the transcript yet."""
        self.recorder.stack_events(self.events(stack))

    def events(self, stack: str) -> list[dict[str, Any]]:
        """Return the events of a stack, the latest first."""
        pages = self.client("cloudformation").get_paginator("describe_stack_events").paginate(StackName=stack)
        return [event for page in pages for event in page["StackEvents"]]

    def outputs(self, stack: str) -> dict[str, str]:
        """Return the outputs of a stack."""
        (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return {each["OutputKey"]: each["OutputValue"] for each in found.get("Outputs", ())}

    def status(self, stack: str) -> str:
        """Return the status of a stack."""
        (found,) = self.client("cloudformation").describe_stacks(StackName=stack)["Stacks"]
        return str(found["StackStatus"])

    def until(self, done: Callable[[], object], what: str, *, ended: Callable[[], bool] = lambda: False) -> None:
        """Wait until something is so.

        Raises:
            TimeoutError: It was not within `patience_s`, or can't become so any more.
        """
        deadline = time.monotonic() + self.patience_s
        while not done():
            if ended() and not done():
                raise TimeoutError(f"{what}: the deployment ended without it")
            if time.monotonic() > deadline:
                raise TimeoutError(f"{what}: not within {self.patience_s:.0f} s")
            time.sleep(self.look_s)

    def may_come(self, done: Callable[[], object]) -> None:
        """Wait for what AWS may do or not: for ten minutes of an account, as many looks of the embedded AWS."""
        for _ in range(MOST_LOOKS):
            if done():
                return
            time.sleep(self.look_s)

    @contextmanager
    def hurry(self, clock_speed: float) -> Iterator[None]:
        """Let the embedded AWS's clock run fast while the block runs; the time of an account is its own."""
        with self.faults(clock_speed=clock_speed):
            yield

    @contextmanager
    def faults(self, **settings: object) -> Iterator[None]:
        """Let the embedded AWS have settings of its control interface while the block runs; an account has its own."""
        if self.state is None:
            yield
            return
        before = dict(self._settings)
        self._settings.update(settings)
        change_control(self.state, settings)
        try:
            yield
        finally:
            self._settings.clear()
            self._settings.update(before)
            reset_control(self.state)
            change_control(self.state, before)
