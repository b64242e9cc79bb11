"""Runs a quick part of the suite on the other supported Pythons of this machine: `python scripts/other_pythons.py`.

`--newest` runs it on the newest of them alone. Each gets an environment of its own below `.venv`.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

ROOT: Final = Path(__file__).resolve().parents[1]
QUICK: Final = (
    "packages/seatrial-base/tests/base",
    "packages/seatrial-load/tests",
    "packages/seatrial-lint/tests/lint",
    "tests/cli/test_commands.py::TestPathsThatCantBe",
    "tests/engines/test_artifact.py",
    "tests/planner/test_sums.py",
    "tests/test_pythons.py",
)
"""What ships into functions, and what paths, numbers and parsers of the standard library decide."""
_CLASSIFIER: Final = "Programming Language :: Python :: 3."
_VERSION: Final = "import sys, ssl, venv; print('.'.join(map(str, sys.version_info[:3])))"


def supported() -> tuple[str, ...]:
    """Return the Pythons that the classifiers name, ascending: `("3.11", "3.12")`."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    minors = [line.removeprefix(_CLASSIFIER) for line in project["classifiers"] if line.startswith(_CLASSIFIER)]
    return tuple(f"3.{minor}" for minor in sorted(map(int, minors)))


def python_of(minor: str, environ: Mapping[str, str] = os.environ) -> tuple[Path, str] | None:
    """Return an interpreter of a minor version with its full version: of PATH, of pyenv, or one that uv made.

    Each is started: a shim of pyenv is there also for versions that it does not run.

    Args:
        minor: Such as `3.13`.
        environ: The variables that say where to look.
    """
    for path in _candidates(minor, environ):
        done = subprocess.run([path, "-c", _VERSION], capture_output=True, text=True, check=False, env=dict(environ))
        if done.returncode == 0 and done.stdout.startswith(f"{minor}."):
            return path, done.stdout.strip()
    return None


def _candidates(minor: str, environ: Mapping[str, str]) -> Iterator[Path]:
    folders = [Path(folder) for folder in environ.get("PATH", "").split(os.pathsep) if folder]
    pyenv = Path(environ.get("PYENV_ROOT") or Path(environ.get("HOME", "/"), ".pyenv")) / "versions"
    uv = Path(environ.get("UV_PYTHON_INSTALL_DIR") or Path(environ.get("HOME", "/"), ".local", "share", "uv", "python"))
    made = [
        *sorted(pyenv.glob(f"{minor}.*"), key=_patch, reverse=True),
        *sorted(uv.glob(f"cpython-{minor}.*"), key=_patch, reverse=True),
    ]
    for folder in (*folders, *(each / "bin" for each in made)):
        if shutil.which(path := folder / f"python{minor}"):
            yield path


def _patch(folder: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", folder.name)]


def run_quick_part(python: Path, version: str) -> int:
    """Run the quick part on an interpreter and return the exit code."""
    print(f"Python {version} ({python}): {' '.join(QUICK)}", flush=True)
    environment = ROOT / ".venv" / "pythons" / version
    uv = Path(sys.executable).with_name("uv")
    variables = os.environ | {"UV_PROJECT_ENVIRONMENT": f"{environment}", "VIRTUAL_ENV": f"{environment}"}
    sync: list[str | Path] = [uv, "sync", "--quiet", "--locked", "--python", python]
    synced = subprocess.run(sync, check=False, cwd=ROOT, env=variables)
    if synced.returncode:
        return synced.returncode
    options = ("--quiet", "-p", "no:cacheprovider", "-m", "not timing")
    tests: list[str | Path] = [environment / "bin" / "pytest", *options, *QUICK]
    return subprocess.run(tests, check=False, cwd=ROOT, env=variables).returncode


def main() -> int:
    """Run it, and return 1 where it failed on one of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--newest", action="store_true", help="only on the newest of them")
    asked = parser.parse_args()
    others = [minor for minor in reversed(supported()) if minor != f"3.{sys.version_info.minor}"]
    found = [each for minor in others if (each := python_of(minor))]
    if not found:
        print(f"no other Python here: neither PATH, pyenv nor uv has {', '.join(others)}")
        return 0
    return max(min(1, run_quick_part(*each)) for each in (found[:1] if asked.newest else found))


if __name__ == "__main__":
    sys.exit(main())
