"""Functions of the embedded AWS that die of SIGKILL at a chosen request, and minutes that pass on it meanwhile."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.e2e.gate import awaited, boto3_client

if TYPE_CHECKING:
    from seatrial_laptop.demo.embedded_aws import EmbeddedAws

DELIVERIES: Final = 3
"""How often Lambda calls a function with an event that CloudFormation sends, when each of them dies."""
SKIPPING: Final = {"wait_speed": 600}
"""A setting of the control interface: minutes that something waits pass in fractions of a second."""
WAIT: Final = {"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "SecondsPath": "$", "End": True}}}


@dataclass(frozen=True, slots=True)
class KilledFunctions:
    """The functions of an embedded AWS, each of which dies before it sends a request with a mark.

    Attributes:
        folder: Of the module that kills them, of the mark and of what was not sent.
    """

    folder: Path

    @property
    def settings(self) -> dict[str, object]:
        """What the control interface is to be told before."""
        return {**SKIPPING, "function_python_path": f"{self.folder}"}

    def die_before(self, mark: str, *, but_once: bool = False) -> None:
        """Let functions die before they send a request whose first line or headers have a mark.

        Args:
            mark: The mark.
            but_once: The first of these requests is sent.
        """
        (self.folder / "unsent").unlink(missing_ok=True)
        if but_once:
            (self.folder / "spared").touch()
        (self.folder / "mark").write_text(mark)

    def live(self) -> None:
        """Let no function die any more."""
        (self.folder / "mark").unlink(missing_ok=True)

    @property
    def unsent(self) -> list[str]:
        """The first lines of the requests before which functions died."""
        unsent = self.folder / "unsent"
        return unsent.read_text().splitlines() if unsent.exists() else []


def killed_functions(folder: Path) -> KilledFunctions:
    """Return the functions that load the module of a folder; none dies yet."""
    shutil.copy(Path(__file__).with_name("sigkill_at_request.py"), folder / "sitecustomize.py")
    return KilledFunctions(folder)


def let_pass(cloud: EmbeddedAws, seconds: float) -> None:
    """Let a workflow wait so many seconds by AWS's date, which `SKIPPING` hurries; its role is that of the trials'."""
    client = boto3_client(cloud, "stepfunctions")
    ours = client.list_state_machines()["stateMachines"][0]["stateMachineArn"]
    role = client.describe_state_machine(stateMachineArn=ours)["roleArn"]
    machine = client.create_state_machine(name="wait", definition=json.dumps(WAIT), roleArn=role)["stateMachineArn"]
    try:
        execution = client.start_execution(stateMachineArn=machine, input=json.dumps(seconds))["executionArn"]
        awaited(lambda: client.describe_execution(executionArn=execution)["status"] == "SUCCEEDED")
    finally:
        client.delete_state_machine(stateMachineArn=machine)
