"""Writes a team's repository: all of its files, or, after a problem, none."""

from __future__ import annotations

import json
import re
import tempfile
import zlib
from base64 import b64encode
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

import seatrial
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.repository.shipped import (
    constraints_text,
    laptop_words,
    package_json,
    package_lock_json,
    requirements_text,
    seatrial_text,
    shipped_text,
)
from seatrial.specs.load import load_spec
from seatrial.specs.presets import spec_of_preset
from seatrial.specs.schema import schema_texts
from seatrial_base.bounds import LONGEST_DEPLOYMENT_S
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from jinja2 import Environment

    from seatrial.repository.answers import Answers, Ci


GIT_FOLDER: Final = ".git"
RECORD: Final = ".seatrial-template.json"
RECORDED: Final = ("name", "ci", "source", "owner", "connection_arn", "index_url", "find_links", "git")
# What belongs to the team once there is anything of it: no example is added to a repository in use.
OWN: Final = ("endpoints/", "environments/")
LONGEST_SESSION_S: Final = 12 * 3600
"""IAM user guide, MaxSessionDuration."""
LONGEST_JOB_S: Final[dict[Ci, int]] = {"github": 6 * 3600}
"""Of a runner that the CI hosts: docs.github.com, usage limits of GitHub Actions. GitLab's is a project's setting."""
MESSAGE_S: Final = 600
"""What a job keeps of its time to report that the deployment goes on without it."""
OLDEST_PYTHON: Final = "3.11"
NEWEST_PYTHON: Final = "3.13"
"""The ends of the range that is tested: jobs run on the newest; the oldest checks changes too, locks among them."""
ACTIONS: Final = {
    "checkout": "actions/checkout@3d3c42e5aac5ba805825da76410c181273ba90b1 # v7.0.1",
    "setup_python": "actions/setup-python@5fda3b95a4ea91299a34e894583c3862153e4b97 # v7.0.0",
    "upload_artifact": "actions/upload-artifact@bbbca2ddaa5d8feaa63e36b76fdaad77386f024f # v7.0.0",
    "download_artifact": "actions/download-artifact@3e5f45b2cfb9172054b4087a40e8e0b5a5461e7c # v8.0.1",
    "configure_aws_credentials": (
        "aws-actions/configure-aws-credentials@e6de054238d6b7531b4efff3b6587d9aade6a06c # v6.2.3"
    ),
}
"""Actions by the commit of a release: the tags of their repositories on GitHub, read 2026-11-22."""
_FOLDERS: Final[dict[Ci, tuple[str, ...]]] = {
    "github": ("common", "oidc", "github"),
    "gitlab": ("common", "oidc", "gitlab"),
    "codepipeline": ("common", "oidc", "codepipeline"),
    "none": ("common",),
}
_CODEOWNERS: Final[dict[Ci, str]] = {"github": ".github/CODEOWNERS"}
EXAMPLE: Final = "endpoints/chat.yaml"
_ENVIRONMENT: Final = "environments/environment.yaml"


@dataclass(frozen=True, slots=True)
class WrittenRepository:
    """What was done with a folder, by the paths of files in it.

    Attributes:
        kept: Files that are there with another text; they were not touched.
    """

    written: tuple[str, ...]
    kept: tuple[str, ...]


def write_repository(folder: Path, answers: Answers, *, update: bool = False) -> WrittenRepository:
    """Write a team's repository into an empty folder, or add what is absent.

    Args:
        folder: Made if it isn't there. A folder with nothing but `.git` is empty.
        update: Add the files that are absent, and keep every other one.

    Raises:
        SpecError: SEA481, the folder isn't empty; SEA482, an answer is wrong; SEA101, a file can't be written. Then
            nothing is written.
    """
    answers.check()
    is_folder = folder.is_dir()
    used = is_folder and any(path.name != GIT_FOLDER for path in folder.iterdir())
    if not update and (used or (not is_folder and (folder.exists() or folder.is_symlink()))):
        hint = "name another folder, or add what is absent: --update"
        raise SpecError.of("SEA481", "the folder is not empty", where=folder.as_posix(), hint=hint)
    own = {path for path in OWN if any((folder / path).glob("*.yaml"))}
    try:
        with tempfile.TemporaryDirectory() as scratch:
            every = _with_locks(repository_files(answers, folder), Path(scratch), answers)
        files = {path: text for path, text in every.items() if not path.startswith(tuple(own))}
        there = {path: text_of(folder / path) for path in (*files, RECORD)}
        if there[RECORD] is None:  # a file that differs has no base: nobody knows what it was written from
            bases = {path: text for path, text in files.items() if there[path] in (None, text)}
            files[RECORD] = record_text(answers, bases)
        new = {path: text for path, text in files.items() if there[path] is None}
        check_links(folder, new)
        _write(folder, new)
    except OSError as error:
        message = f"can't be written: {error.strerror}"
        raise SpecError.of("SEA101", message, where=str(error.filename or folder)) from error
    kept = [path for path, text in files.items() if path not in new and there[path] != text]
    return WrittenRepository(tuple(sorted(new)), tuple(sorted(kept)))


def _with_locks(files: Mapping[str, str], scratch: Path, answers: Answers) -> dict[str, str]:
    """Return the files with the lock of the example, planned for every environment."""
    _write(scratch, {path: text for path, text in files.items() if path.startswith(OWN)})
    spec = scratch / EXAMPLE
    lock = spec
    for target in answers.targets:
        lock = write_lock(make_plan(load_spec(spec, target.name, environments=scratch / "environments")), spec)
    return {**files, lock.relative_to(scratch).as_posix(): lock.read_text(encoding="utf-8")}


def check_links(folder: Path, paths: Iterable[str]) -> None:
    """Refuse to write through a link that leads out of the folder.

    Raises:
        SpecError: SEA101, with each path that leads out.
    """
    home = follow_links(folder)
    outside = [path for path in sorted(paths) if not follow_links((folder / path).parent).is_relative_to(home)]
    if outside:
        message, hint = "a link leads out of the folder", "replace the link by a folder"
        raise SpecError(Finding("SEA101", Place.at((folder / path).as_posix()), message, hint) for path in outside)


def text_of(file: Path) -> str | None:
    """Return a file's text; None when there is none. What is no text differs from every text."""
    if not (file.exists() or file.is_symlink()):
        return None
    if file.exists() and not file.is_file():  # a folder, or a pipe, which nobody may write to
        return ""
    try:
        return file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""


def _write(folder: Path, files: Mapping[str, str]) -> None:
    """Write new files; when one can't be written, none is left, nor a folder made for them."""
    made: list[Path] = []
    try:
        for path, text in files.items():
            file = folder / path
            for missing in reversed([parent for parent in file.parents if not parent.exists()]):
                missing.mkdir()
                made.append(missing)
            with file.open("x", encoding="utf-8") as new:  # who wrote it meanwhile keeps it
                made.append(file)
                new.write(text)
    except BaseException:
        for path_made in reversed(made):
            with suppress(OSError):
                path_made.rmdir() if path_made.is_dir() else path_made.unlink()
        raise


def record_text(answers: Answers, texts: Mapping[str, str]) -> str:
    """Return the record of what wrote a repository: its answers, and each text as it was, the base of a later merge.

    The texts themselves are kept, compressed, as no later release can render what an earlier one wrote.
    """
    document = {
        "seatrial": seatrial.__version__,
        "answers": {name: getattr(answers, name) for name in RECORDED},
        "environments": [asdict(target) for target in answers.targets],
        "files": {
            path: b64encode(zlib.compress(text.encode(), 9)).decode()
            for path, text in sorted(texts.items())
            if not path.startswith(OWN)
        },
    }
    return json.dumps(document, indent=1) + "\n"


def repository_files(answers: Answers, folder: Path = Path()) -> dict[str, str]:
    """Return the text of every file but the locks and the record, by its path.

    Args:
        folder: The repository, whose wheels give hashes if it has any.

    Raises:
        SpecError: SEA482, wheels are missing.
    """
    targets = answers.targets
    holes = {
        "name": answers.name,
        "pipeline_name": re.sub(r"[^A-Za-z0-9-]", "-", answers.name),
        "team": answers.name.lower(),
        "version": seatrial.__version__,
        "ci": answers.ci,
        "targets": targets,
        "promoted": [target for target in targets if target.source is not None],
        "sources": {target.name: target for target in targets},
        "first": targets[0].name,
        "environment_names": " ".join(target.name for target in targets),
        "environment_names_text": ", ".join(f"`{target.name}`" for target in targets),
        "source": answers.source,
        "owner": answers.owner,
        "owner_name": answers.owner.rpartition("/")[2].lstrip("@"),
        "connection_arn": answers.connection_arn,
        "variables": answers.variables,
        "laptop": laptop_words(answers),
        "index_words": "" if answers.index_url is None else f"--index-url '{answers.index_url}' ",
        "install_env": "\n        env:" if answers.variables else "",
        "uses": ACTIONS,
        "python": NEWEST_PYTHON,
        "oldest_python": OLDEST_PYTHON,
        "session_s": job_s(answers.ci),
        "deploy_s": job_s(answers.ci) - MESSAGE_S,
        **_trust(answers),
    }
    files = {path: _fill(template, holes) for path, template in _templates(answers.ci).items() if path != _ENVIRONMENT}
    for target in answers.targets:
        files[f"environments/{target.name}.yaml"] = _fill(f"common/{_ENVIRONMENT}.j2", {**holes, "target": target})
    if answers.preset is not None:
        files[EXAMPLE] = spec_of_preset(answers.preset, name=Path(EXAMPLE).stem)
    for name, text in schema_texts().items():
        files[f"schema/{name}.schema.json"] = text
    return {
        **files,
        "app.py": shipped_text("app.py"),
        "cdk.json": shipped_text("cdk.json"),
        "constraints.txt": constraints_text(),
        "requirements.txt": requirements_text(answers),
        "seatrial.txt": seatrial_text(answers, folder),
        "package.json": package_json(answers.name.lower()),
        "package-lock.json": package_lock_json(answers.name.lower()),
    }


def _templates(ci: Ci) -> dict[str, str]:
    """Return the templates of a CI, by the path of the file that each becomes."""
    root = _root()
    templates = {}
    for folder in _FOLDERS[ci]:
        for template in sorted((root / folder).rglob("*.j2")):
            path = template.relative_to(root / folder).with_suffix("").as_posix()
            # By its own name, git would apply `.gitignore` to the templates.
            renamed = {"gitignore": ".gitignore", "CODEOWNERS": _CODEOWNERS.get(ci, path)}
            templates[renamed.get(path, path)] = template.relative_to(root).as_posix()
    return templates


def job_s(ci: Ci) -> int:
    """Return how long a deployment may take in a CI, in seconds: as long as a stack's own limits, as far as it can."""
    return min(LONGEST_DEPLOYMENT_S, LONGEST_SESSION_S, LONGEST_JOB_S.get(ci, LONGEST_SESSION_S))


def _trust(answers: Answers) -> dict[str, str]:
    """Return whom the roles trust.

    GitHub: docs.github.com, "OpenID Connect in AWS"; GitLab: docs.gitlab.com, "OpenID Connect in AWS", 2026-11-22.
    """
    if answers.ci == "gitlab":
        subject = f"project_path:{answers.source}:ref_type:branch:ref:main"
        return {
            "issuer": "gitlab.com",
            "audience": "https://gitlab.com",
            "subject": subject,
            "subject_help": "The claim sub of the tokens of the branch main",
            "deploy_subject": "${Subject}",
            "read_subject": "${Subject}",
            "protected": "the branch main and the environments are protected (Settings)",
        }
    return {
        "issuer": "token.actions.githubusercontent.com",
        "audience": "sts.amazonaws.com",
        "subject": f"repo:{answers.source}",
        "subject_help": "Beginning of the claim sub of the tokens; names of newer repositories have numbers in it",
        "deploy_subject": "${Subject}:environment:${Environment}",
        "read_subject": "${Subject}:ref:refs/heads/main",
        "protected": "the pipeline is deployed (`make pipeline`)"
        if answers.ci == "codepipeline"
        else "`make check-environments` finds nothing",
    }


def _fill(template: str, holes: Mapping[str, object]) -> str:
    return _environment().get_template(template).render(holes)


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined  # noqa: PLC0415 (other commands need no Jinja)

    return Environment(  # noqa: S701 (YAML, Markdown and make, not HTML)
        loader=FileSystemLoader(_root()),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        variable_start_string="<<",
        variable_end_string=">>",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )


def _root() -> Path:
    return Path(__file__).resolve().parent / "templates"
