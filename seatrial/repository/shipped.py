"""Parts that a team's repository shares with this one: app, feature flags, and the versions of every dependency."""

from __future__ import annotations

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Final

from seatrial_base import __version__
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from seatrial.repository.answers import Answers

PACKAGES: Final = ("seatrial", "seatrial-base", "seatrial-lint", "seatrial-load")
CDK_CLI: Final = "aws-cdk"
_LOCKFILE_VERSION: Final = 3  # https://docs.npmjs.com/cli/configuring-npm/package-lock-json


def shipped_text(name: str) -> str:
    """Return a file of this repository's root, which an installed wheel carries next to this module."""
    package = Path(__file__).resolve().parent
    installed = package / "shipped" / name
    return (installed if installed.is_file() else package.parents[1] / name).read_text(encoding="utf-8")


def requirements_text(answers: Answers) -> str:
    """Return every package that Seatrial needs, with the hashes of its files: `make lock` writes them."""
    text = (Path(__file__).resolve().parent / "requirements.txt").read_text(encoding="utf-8")
    return "".join(f"{option}\n" for option in _index(answers)) + text


def seatrial_text(answers: Answers, folder: Path) -> str:
    """Return the requirements of Seatrial's own packages, which are installed without what they need.

    Args:
        folder: The repository; its wheels, if it has any, give the hashes.

    Raises:
        SpecError: SEA482, a folder of wheels lacks some of this version.
    """
    head = "# Installed without dependencies, which requirements.txt has with their hashes.\n"
    head += "".join(f"{option}\n" for option in _options(answers))
    if answers.find_links is None or "://" in answers.find_links:
        return head + "".join(f"{_requirement(answers, name)}\n" for name in PACKAGES)
    place = Path(os.path.normpath(follow_links(folder) / answers.find_links))  # the folder may be a new one
    wheels = {name: place / f"{name.replace('-', '_')}-{__version__}-py3-none-any.whl" for name in PACKAGES}
    missing = [wheel.name for wheel in wheels.values() if not wheel.is_file()]
    if missing:
        hint = "make release of Seatrial's repository builds them into dist/"
        where = Place.at("--find-links")
        raise SpecError(Finding("SEA482", where, f"{place.as_posix()} has no {name}", hint) for name in missing)
    hashes = {name: sha256(wheel.read_bytes()).hexdigest() for name, wheel in wheels.items()}
    lines = (f"{_requirement(answers, name)} --hash=sha256:{digest}\n" for name, digest in hashes.items())
    return head + "".join(lines)


def laptop_words(answers: Answers) -> str:
    """Return what pip is given to install the laptop's package, which only some need."""
    return " ".join((*_options(answers), f"'{_requirement(answers, 'seatrial-laptop')}'"))


def _options(answers: Answers) -> tuple[str, ...]:
    """Return where pip looks for Seatrial: in one place, or whoever registers a name in the other would be trusted."""
    if answers.find_links is not None:
        return "--no-index", f"--find-links {answers.find_links}"
    return _index(answers)


def _index(answers: Answers) -> tuple[str, ...]:
    return () if answers.index_url is None else (f"--index-url {answers.index_url}",)


def _requirement(answers: Answers, package: str) -> str:
    if answers.revision is None:
        return f"{package}=={__version__}"
    url, reference = answers.revision
    below = "" if package == "seatrial" else f"#subdirectory=packages/{package}"
    return f"{package} @ git+{url}@{reference or f'v{__version__}'}{below}"


def constraints_text() -> str:
    """Return the tested version of every Python package, as constraints: what is not needed is not installed."""
    lines = shipped_text("requirements.txt").splitlines()
    return "".join(f"{line}\n" for line in lines if line and not line.startswith("-"))


def package_json(name: str) -> str:
    """Return a package.json with the pinned CDK CLI."""
    return _json(_package(name))


def package_lock_json(name: str) -> str:
    """Return its lock: the CDK CLI has no dependencies, and its hash is the one of our lock."""
    locked = json.loads(shipped_text("package-lock.json"))["packages"][f"node_modules/{CDK_CLI}"]
    package = _package(name)
    packages = {"": {"name": name, "devDependencies": package["devDependencies"]}, f"node_modules/{CDK_CLI}": locked}
    return _json({"name": name, "lockfileVersion": _LOCKFILE_VERSION, "requires": True, "packages": packages})


def cdk_cli_version() -> str:
    """Return the version of the CDK CLI that fits the constraints: one that reads the assembly of aws-cdk-lib."""
    return str(json.loads(shipped_text("package.json"))["devDependencies"][CDK_CLI])


def _package(name: str) -> dict[str, object]:
    return {"name": name, "private": True, "devDependencies": {CDK_CLI: cdk_cli_version()}}


def _json(document: dict[str, object]) -> str:
    return json.dumps(document, indent=2) + "\n"
