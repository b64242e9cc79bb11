"""The app of `cdk.json`, run in a process of its own: it writes the templates of a part of it."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.node import check_node
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import follow_links, read_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LONGEST_S = 600
LAST_LINES = 25
PUBLISHER = "seatrial_stacks.publish_products"
"""The module that writes the templates of products, by its name: the core knows no CDK."""


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
        SeatrialError: SEA446 without Node; SEA450 with the app's last lines when it fails.
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
        lines = [line for line in f"{done.stdout}\n{done.stderr}".splitlines() if line.strip()]
        output = "\n".join(lines[-LAST_LINES:])
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
        output = "\n".join(done.stderr.splitlines()[-LAST_LINES:])
        raise SeatrialError.of("SEA450", f"the templates can't be made:\n{output}", where=where)
    return done.stdout


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
