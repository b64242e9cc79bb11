"""Deploys every endpoint of a folder to one environment: what they share first, then each by itself, many at a time."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from seatrial.deployment.document import products_stack, service_stack
from seatrial.operations.app import cdk_cli, deploy_options, run_app, run_cdk
from seatrial_base.errors import SeatrialError, SpecError

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


_SELECTS: Final = {"environment", "endpoint", "endpoints", "environments", "products", "pipeline", "destroy"}


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


def endpoints_to_deploy(locked: LockedDeployments, without: Collection[str]) -> list[tuple[str, Path]]:
    """Return names and specs of the endpoints of one environment, but those that are left out.

    What failed elsewhere may come with another endpoint here, as a further model of its instances or as a variant: that
    one is left out too.
    """
    return [
        (each.endpoint.name, file)
        for each, file in zip(locked.deployments, locked.files, strict=True)
        if not {file.stem, *(one.endpoint.name for one in (each, *each.guests, *each.variants))} & {*without}
    ]


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
        SeatrialError: SEA404 for options that a folder can't have, SEA450 when the app fails, SEA603 without a CDK CLI,
            SEA609 when what the endpoints share can't be deployed: then nothing else was begun.
    """
    environment = context["environment"]
    # The assembly is given to the CDK CLI, which reads no context then: the app does.
    given, cdk_options = _context_of(cdk_options)
    assembly = run_app(root, {**given, **context}, folder)
    options = ["--app", f"{assembly}", "--exclusively", *cdk_options]
    services = (service_stack(environment), products_stack(environment))
    if shared := [name for name in services if (assembly / f"{name}.template.json").is_file()]:
        command = [cdk_cli(root), "deploy", *shared, *deploy_options(options)]
        if code := run_cdk(command, root, lambda line: tell(f"shared | {line}")):
            message = f"the CDK CLI ended with {code} for {' and '.join(shared)}, and no endpoint was begun"
            raise SeatrialError.of("SEA609", message, where=environment, hint="`shared |` lines above have the reason")
    command = [sys.executable, "-m", "seatrial.cli", "deploy", "-e", environment, "--yes"]
    command += ["--environments", context["environments"]]
    running: list[subprocess.Popen[str]] = []
    chosen = endpoints_to_deploy(locked, without)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        begun = [
            pool.submit(_deploy, name, [*command, f"{file}", "--", *options], tell, running) for name, file in chosen
        ]
        try:
            ends = [each.result() for each in begun]
        except BaseException:
            # Each ends its own CDK CLI; what CloudFormation has begun goes on.
            pool.shutdown(wait=False, cancel_futures=True)
            for process in running:
                process.terminate()
            raise
    for name in sorted({each.endpoint.name for each in locked.deployments} - {name for name, _ in chosen}):
        tell(f"left out: {name}")
    wrong = (each for each in locked.broken if each.name not in without)
    return (*ends, *(EndpointEnd(each.name, WRONG, f"{each.problems[0]}".splitlines()[0]) for each in wrong))


def _deploy(name: str, command: Sequence[str], tell: Tell, running: list[subprocess.Popen[str]]) -> EndpointEnd:
    """Run the deployment of one endpoint to its end; its process is added to those that an interruption ends."""
    lines = ["it wrote nothing"]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        running.append(process)
        for text in process.stdout or ():
            lines.append(text.rstrip())
            tell(f"{name} | {text.rstrip()}")
    # The last line but hints: they follow an error.
    return EndpointEnd(name, process.returncode, [line for line in lines if line and line[0] != " "][-1])


def _context_of(options: Sequence[str]) -> tuple[dict[str, str], list[str]]:
    """Return the context values among options of the CDK CLI, and the other options.

    Raises:
        SpecError: SEA404 for options and context that name another app, other stacks or other folders.
    """
    context, others, words = dict[str, str](), list[str](), iter(options)
    for word in words:
        option, equals, value = word.partition("=")
        if option in {"--app", "-a", "--all", "--exclusively", "-e"}:
            message = f"{option} can't be given: the stacks of a folder are deployed from one synthesis"
            raise SpecError.of("SEA404", message, where="command line", hint="deploy one endpoint by its name")
        if option not in {"-c", "--context"}:
            others.append(word)
            continue
        name, _, text = (value if equals else next(words, "")).partition("=")
        if name in _SELECTS:
            message = f"the context {name} can't be given: the folder and its environment are selected already"
            raise SpecError.of("SEA404", message, where="command line", hint="leave it out")
        context[name] = text
    return context, others
