"""Deploys every endpoint of a folder to one environment: what they share first, then each by itself, many at a time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.deployment.document import products_stack, service_stack
from seatrial.operations.app import cdk_cli, deploy_options, run_app, run_cdk
from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence
    from pathlib import Path

    from seatrial.deployment.load import LockedDeployments
    from seatrial.operations.app import Tell

AT_ONCE: Final = 8
"""Deployments at the same time: each waits for CloudFormation and its trial, and holds a Node process meanwhile."""
WRONG: Final = 2
"""The exit code of an endpoint that can't be synthesized: that of a wrong spec."""
SOME_FAILED: Final = 50
"""The exit code where some endpoints failed: no code of a single one."""


@dataclass(frozen=True, slots=True)
class EndpointEnd:
    """How the deployment of one endpoint ended.

    Attributes:
        exit_code: That of `seatrial deploy` of this endpoint: 0 when it serves.
        line: Its last line.
    """

    name: str
    exit_code: int
    line: str


def deploy_folder(
    locked: LockedDeployments,
    root: Path,
    context: Mapping[str, str],
    folder: Path,
    tell: Tell,
    *,
    without: Collection[str] = (),
    cdk_options: Sequence[str] = (),
) -> tuple[EndpointEnd, ...]:
    """Deploy the endpoints of one environment, from one synthesis; one that fails stops none of the others.

    Args:
        locked: What is locked, and what is wrong.
        root: Folder of `cdk.json`.
        context: The app's: `environment`, `endpoints` and `environments`.
        folder: For the synthesis; it is made.
        tell: Takes each line, with the name of its endpoint before it.
        without: Names of endpoints that are left out.
        cdk_options: More options of `cdk deploy`.

    Raises:
        SeatrialError: SEA450 when the app fails, SEA603 without a CDK CLI, SEA609 when what the endpoints share can't
            be deployed: then nothing else was begun.
    """
    environment = context["environment"]
    assembly = run_app(root, context, folder)
    shared = [
        name
        for name in (service_stack(environment), products_stack(environment))
        if (assembly / f"{name}.template.json").is_file()
    ]
    options = ["--app", f"{assembly}", "--exclusively", *cdk_options]
    if shared:
        command = [cdk_cli(), "deploy", *shared, *deploy_options(options)]
        if code := run_cdk(command, root, lambda line: tell(f"shared | {line}")):
            message = f"the CDK CLI ended with {code} for {' and '.join(shared)}, and no endpoint was begun"
            raise SeatrialError.of("SEA609", message, where=environment, hint="`shared |` lines above have the reason")
    running: list[subprocess.Popen[str]] = []

    def deploy(name: str, file: Path) -> EndpointEnd:
        command = [sys.executable, "-m", "seatrial.cli", "deploy", f"{file}", "-e", environment, "--yes"]
        line = "it wrote nothing"
        with subprocess.Popen(
            [*command, "--environments", context["environments"], "--", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            running.append(process)
            for text in process.stdout or ():
                line = text.rstrip("\n") or line
                tell(f"{name} | {text.rstrip()}")
        return EndpointEnd(name, process.returncode, line)

    named = zip((each.endpoint.name for each in locked.deployments), locked.files, strict=True)
    chosen = [(name, file) for name, file in named if name not in without]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [pool.submit(deploy, name, file) for name, file in chosen]
        try:
            ends = [each.result() for each in begun]
        except BaseException:
            # Each ends its own CDK CLI; what CloudFormation has begun goes on.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()
            raise
    wrong = [
        EndpointEnd(each.name, WRONG, f"{each.problems[0]}".splitlines()[0])
        for each in locked.broken
        if each.name not in without
    ]
    return (*ends, *wrong)
