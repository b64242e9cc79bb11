"""`cdk deploy` of one endpoint: its output, and the lines of its trial, as they come."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial.account.trials import LOOK_S
from seatrial.operations.app import app_root, app_variables
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.repeat import repeat_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial.account.trials import LiveTrial
    from seatrial.deployment.document import Deployment

    Look = Callable[[], LiveTrial | None]
    Tell = Callable[[str], None]

STOP_S: Final = 5.0
"""After which a CDK CLI that was asked to end is killed."""
APPROVAL: Final = "--require-approval"
_OURS: Final = ((APPROVAL, "never"), ("--progress", "events"), ("--no-notices",), ("--no-color",))


def deploy_command_of(
    spec: Path, environments: Path, deployment: Deployment, cdk_options: Sequence[str] = ()
) -> tuple[Path, list[str]]:
    """Return the folder of the CDK app and the command that deploys an endpoint; `cdk_options` go before ours.

    Raises:
        SpecError: SEA450 when there is no app, SEA603 when there is no CDK CLI.
    """
    root = app_root(spec)
    if root is None:
        hint = "keep the spec below the folder of the CDK app (`seatrial init` writes one)"
        raise SpecError.of("SEA450", "no cdk.json in its folder or above", where=spec.as_posix(), hint=hint)
    # The CLI beside this interpreter goes first: another on PATH may be of another project and version.
    beside = Path(sys.executable).parent / "cdk"
    cdk = beside if beside.is_file() else shutil.which("cdk")
    if cdk is None:
        hint = "install it: npm install --global aws-cdk"
        raise SpecError.of("SEA603", "the CDK CLI is not installed", where="cdk", hint=hint)
    context = {"environment": deployment.environment.name, "endpoint": spec.stem}
    for name, folder in (("endpoints", spec.parent), ("environments", environments)):
        # The app's own default needs no context, so the command stays what the user would type.
        if follow_links(folder) != follow_links(root / name):
            context[name] = f"{follow_links(folder)}"
    options = [word for name, value in context.items() for word in ("-c", f"{name}={value}")]
    # What the user gives replaces ours: no option is given twice.
    ours = [word for option in _OURS if option[0] not in cdk_options for word in option]
    return root, [f"{cdk}", "deploy", deployment.stack_name, *options, *ours, *cdk_options]


def run_cdk(command: Sequence[str], root: Path, tell: Tell, variables: Mapping[str, str] | None = None) -> int:
    """Run a command of the CDK CLI, pass each line of its output to `tell`, and return its exit code.

    An interruption ends the CLI with all that it started; CloudFormation continues. `variables` replace the app's
    environment.
    """
    with subprocess.Popen(
        command,
        cwd=root,
        env=dict(app_variables(root) if variables is None else variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                tell(line.rstrip("\n"))
            return process.wait()
        # Ctrl-C too: the CLI has a session of its own, so the terminal's signal does not reach it or its children.
        except BaseException:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            try:
                process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                pass
            finally:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            raise


@contextmanager
def trial_looked_at(look: Look, tell: Callable[[LiveTrial], None], *, every_s: float = LOOK_S) -> Iterator[None]:
    """Pass a trial that begins while the block runs to `tell`, every `every_s` and once at the end of the block.

    An earlier deployment's trial is left out. What can't be read now is read at a later look, and stops nothing.
    """
    before = look()

    def tell_new() -> None:
        seen = look()
        if seen is not None and seen.request_id and (before is None or seen.request_id != before.request_id):
            tell(seen)

    with repeat_meanwhile(every_s, tell_new):
        yield
    tell_new()


def elapsed_words(began_s: float) -> str:
    """Return the time since a moment of the monotonic clock, as `3:07`."""
    minutes, seconds = divmod(int(time.monotonic() - began_s), 60)
    return f"{minutes}:{seconds:02}"
