"""The app of `cdk.json`: its templates, from a process of its own, and `cdk deploy` of one endpoint."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial.account.trials import LOOK_S
from seatrial.node import check_node
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import follow_links, read_text
from seatrial_base.repeat import repeat_meanwhile

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from seatrial.account.trials import LiveTrial
    from seatrial.deployment.document import Deployment

    Look = Callable[[], LiveTrial | None]
    Tell = Callable[[str], None]

LONGEST_S = 600
LAST_LINES = 25
_COPY: Final = re.compile(r"\s*A copy of this report can be found in:\s*\S+")
PUBLISHER = "seatrial_stacks.publish_products"
"""The module that writes the templates of products, by its name: the core knows no CDK."""
STOP_S: Final = 1.0
"""After which a CDK CLI that does not end is killed: before this process is, `seatrial_base.terminal.PATIENCE_S`."""
APPROVAL: Final = "--require-approval"
_OURS: Final = ((APPROVAL, "never"), ("--progress", "events"), ("--no-notices",), ("--no-color",))


def app_folder(file: Path) -> Path:
    """Return the folder of the app that a file belongs to: the nearest with a `cdk.json`, upwards.

    Raises:
        SpecError: SEA450 when there is none.
    """
    root = app_root(file)
    if root is None:
        hint = "keep the spec below the folder of the CDK app"
        raise SpecError.of("SEA450", "no cdk.json in its folder or above", where=file.as_posix(), hint=hint)
    return root


def run_app(root: Path, narrowed: Mapping[str, str], folder: Path, variables: Mapping[str, str] | None = None) -> Path:
    """Run an app and return the folder of its templates.

    Args:
        narrowed: Context values on top of those of `cdk.json`.
        folder: For what the app writes; it is made.
        variables: Environment variables on top of this process's.

    Raises:
        SeatrialError: SEA446 without Node; SEA450 with the app's last lines, or all its findings, when it fails.
    """
    where = (root / "cdk.json").as_posix()
    try:
        document = json.loads(read_text(root / "cdk.json"))
        command = shlex.split(document["app"])
        context: dict[str, object] = dict(document.get("context", {}))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        message = f"it can't be read, or names no app: {error}"
        raise SpecError.of("SEA450", message, where=where) from error
    # `python` on PATH may lack the packages that this interpreter has.
    if command and command[0] in {"python", "python3"}:
        command[0] = sys.executable
    out, scratch = folder / "out", folder / "tmp"  # what an app that is ended leaves behind goes with the folder
    for path in (out, scratch):
        path.mkdir(parents=True)
    given = app_variables(root) | {
        "CDK_OUTDIR": f"{out}",
        "CDK_CONTEXT_JSON": json.dumps({**context, **narrowed}),
        "TMPDIR": f"{scratch}",
        **(variables or {}),
    }
    done = _run(command, root, given, where)
    if done.returncode:
        output = _failure_output(done)
        raise SeatrialError.of("SEA450", f"the app ended with exit code {done.returncode}:\n{output}", where=where)
    return out


def publish_products(products: Sequence[Path], environments: Path) -> str:
    """Write the templates of products' current versions; return their paths from the folder of `cdk.json`, one a line.

    Raises:
        SpecError: SEA450 when there is no `cdk.json`.
        SeatrialError: SEA450 with the last lines when the templates can't be made.
    """
    root = app_folder(products[0])
    where = ", ".join(product.as_posix() for product in products)
    files = (os.path.relpath(follow_links(path), root) for path in (environments, *products))
    done = _run([sys.executable, "-m", PUBLISHER, *files], root, app_variables(root), where)
    if done.returncode:
        output = _failure_output(done)
        raise SeatrialError.of("SEA450", f"the templates can't be made:\n{output}", where=where)
    return done.stdout


def _failure_output(done: subprocess.CompletedProcess[str]) -> str:
    """Return what an app wrote that failed: its last lines, but of the CDK's validation every finding.

    The copy of that report which the CDK names lies in a folder that is removed.
    """
    text, copies = _COPY.subn("", f"{done.stdout}\n{done.stderr}")
    lines = [line for line in text.splitlines() if line.strip()]
    return "\n".join(lines if copies else lines[-LAST_LINES:])


def app_root(spec: Path) -> Path | None:
    """Return the folder of the CDK app that a spec belongs to, the nearest with a `cdk.json`; `None` without one."""
    return next((folder for folder in follow_links(spec).parents if (folder / "cdk.json").is_file()), None)


def app_variables(root: Path) -> dict[str, str]:
    """Return the variables of the app: this interpreter's tools and the modules of its own folder first."""
    given = os.environ
    tools = os.pathsep.join([str(Path(sys.executable).parent), *filter(None, [given.get("PATH")])])
    modules = os.pathsep.join([*source_roots(root), *filter(None, [given.get("PYTHONPATH")])])
    return {**given, "PATH": tools, "PYTHONPATH": modules}


def source_roots(root: Path) -> list[str]:
    """Return the folders of an app that hold modules: its own, and those of this repository where it is a copy."""
    folders = (root, root / "constructs", root / "stacks", *sorted(root.glob("packages/*")))
    return [str(follow_links(folder)) for folder in folders if folder.is_dir()]


def _run(
    command: list[str], folder: Path, variables: Mapping[str, str], where: str
) -> subprocess.CompletedProcess[str]:
    check_node(variables)
    try:
        return subprocess.run(
            command,
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=LONGEST_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise SeatrialError.of("SEA450", f"the app did not end within {LONGEST_S} s", where=where) from error
    except OSError as error:
        raise SeatrialError.of("SEA450", f"the app can't be started: {error.strerror}", where=where) from error


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
    context = {"environment": deployment.environment.name, "endpoint": spec.stem}
    for name, folder in (("endpoints", spec.parent), ("environments", environments)):
        # The app's own default needs no context, so the command stays what the user would type.
        if follow_links(folder) != follow_links(root / name):
            context[name] = f"{follow_links(folder)}"
    options = [word for name, value in context.items() for word in ("-c", f"{name}={value}")]
    return root, [cdk_cli(), "deploy", deployment.stack_name, *options, *deploy_options(cdk_options)]


def cdk_cli() -> str:
    """Return the CDK CLI.

    Raises:
        SpecError: SEA603 when there is none.
    """
    # The one next to this interpreter goes first: another on PATH may be of another project and version.
    own = Path(sys.executable).parent / "cdk"
    cdk = own if own.is_file() else shutil.which("cdk")
    if cdk is None:
        hint = "install it: npm install --global aws-cdk"
        raise SpecError.of("SEA603", "the CDK CLI is not installed", where="cdk", hint=hint)
    return f"{cdk}"


def deploy_options(given: Sequence[str]) -> list[str]:
    """Return the options of `cdk deploy`: ours, unless one is given, then those that are."""
    return [*(word for option in _OURS if option[0] not in given for word in option), *given]


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
