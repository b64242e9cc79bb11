"""Upgrades a team's repository: merges what this release writes into what a team made of an earlier one's files."""

from __future__ import annotations

import difflib
import json
import re
import zlib
from base64 import b64decode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import seatrial
from seatrial.operations.checkout import merge_texts, uncommitted_paths
from seatrial.repository.answers import Answers, Ci, TargetEnvironment, targets_of
from seatrial.repository.write import (
    GIT_FOLDER,
    OWN,
    RECORD,
    RECORDED,
    check_links,
    record_text,
    repository_files,
    text_of,
)
from seatrial.specs.pipeline import promotion_order
from seatrial_base.errors import SpecError
from seatrial_base.files import write_together
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec

_OURS: Final = "this repository"
Outcome = Literal["added", "changed", "merged", "conflict", "removed", "kept"]


@dataclass(frozen=True, slots=True)
class RepositoryRecord:
    """What wrote a repository.

    Attributes:
        version: Of Seatrial.
        texts: What it wrote into each file, but into those of the team.
    """

    version: str
    answers: Answers
    texts: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class UpgradedFile:
    """What an upgrade does with a file.

    Attributes:
        before: Its text; None where there is none.
        after: Its text after the upgrade; None where it is removed.
        reason: Why a file that this release would write otherwise is kept; empty for other outcomes.
    """

    path: str
    outcome: Outcome
    before: str | None
    after: str | None
    reason: str = ""

    @property
    def difference(self) -> str:
        """What changes, as a unified diff; empty for a file that is kept."""
        before, after = ((text or "").splitlines(keepends=True) for text in (self.before, self.after))
        return "".join(difflib.unified_diff(before, after, f"a/{self.path}", f"b/{self.path}"))


def read_record(folder: Path) -> RepositoryRecord:
    """Read what wrote a repository.

    Raises:
        SpecError: SEA671, there is no record, or it can't be read.
    """
    file = folder / RECORD
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
        targets = tuple(TargetEnvironment(**each) for each in document["environments"])
        answers = Answers(targets=targets, **_recorded(document["answers"]))
        return RepositoryRecord(f"{document['seatrial']}", answers, _texts(document["files"]))
    except FileNotFoundError:
        message = "nothing records what wrote this repository"
        hint = "seatrial init DIR --update adds what is absent, the record too; what differs has no base then"
        raise SpecError.of("SEA671", message, where=file.as_posix(), hint=hint) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        message, hint = "the record can't be read", f"take it from git: git checkout -- {RECORD}"
        raise SpecError.of("SEA671", message, where=file.as_posix(), hint=hint) from error


def _texts(files: Mapping[str, str]) -> dict[str, str]:
    # Whoever edits a record must not have the next upgrade remove what is the team's, or git's.
    if foreign := [path for path in files if path.startswith((*OWN, f"{GIT_FOLDER}/"))]:
        raise ValueError(foreign)
    return {path: zlib.decompress(b64decode(text)).decode() for path, text in files.items()}


def _recorded(answers: dict[str, Any]) -> dict[str, Any]:
    given = {name: answers.get(name) for name in RECORDED}
    if not all(isinstance(each, str | None) for each in given.values()) or given["ci"] not in get_args(Ci):
        raise ValueError(given)
    return given


def check_version(record: RepositoryRecord, folder: Path) -> None:
    """Refuse to write an older release's files over those of a newer one.

    Raises:
        SpecError: SEA671.
    """
    written, own = (tuple(map(int, re.findall(r"\d+", text))) for text in (record.version, seatrial.__version__))
    if written > own:
        message = f"a newer release wrote it, {record.version}, and this is {seatrial.__version__}"
        hint = "install that release (seatrial.txt), or go back with --force"
        raise SpecError.of("SEA671", message, where=(folder / RECORD).as_posix(), hint=hint)


def environment_problems(environments: Path) -> Iterator[Finding]:
    """Yield how the environments of a repository differ from those that its workflows were written for (SEA670).

    Workflows name each environment, its roles and its approval, so that no job that holds a role reads from a checkout
    which one to assume; a file that no job knows would be deployed, checked and promoted by nothing.
    """
    folder = environments.parent
    if not (folder / RECORD).is_file():
        return
    try:
        record = read_record(folder)
    except SpecError as error:
        yield from error.problems
        return
    try:
        kept = tuple(each for each in promotion_order(environments) if not each.is_embedded)
    except SpecError:  # told where the environments are read
        return
    written = {target.name: target for target in record.answers.targets}
    hint = f"seatrial init {folder.as_posix()} --upgrade shows what changes; with --write it is written"
    names = {environment.name for environment in kept}
    for environment in kept:
        name, place = environment.name, (environments / f"{environment.name}.yaml").as_posix()
        if (target := written.get(name)) is None:
            yield Finding("SEA670", Place.at(place), f"no workflow knows {name}", hint)
            continue
        for field, before, now in _differences(target, environment, names):
            message = f"the workflows were written for {before}, not {now}"
            yield Finding("SEA670", Place.at(place, field), message, hint)
        if not _is_deployed(folder, record.answers.ci, name):
            message = f"no job deploys {name}: a workflow was removed, or kept as it was at an upgrade"
            yield Finding("SEA670", Place.at(place), message, f"add a job that runs make deploy ENV={name}")
    for name in written.keys() - names:
        where = Place.at((folder / RECORD).as_posix())
        yield Finding("SEA670", where, f"the workflows deploy {name}, which has no file", hint)


def conflicts(environments: Path) -> Iterator[Finding]:
    """Yield the files of a repository that hold the markers of an upgrade's conflict (SEA673)."""
    folder = environments.parent
    try:
        paths = read_record(folder).texts
    except SpecError:  # there is no record, or what is wrong with it is told where it is used
        return
    for path in paths:
        if has_conflict(text_of(folder / path)):
            message = "it holds the markers of an upgrade's conflict"
            yield Finding("SEA673", Place.at((folder / path).as_posix()), message, "choose a side of each, and commit")


def _is_deployed(folder: Path, ci: Ci, name: str) -> bool:
    """Tell whether a workflow has a job for an environment; CodePipeline's reads the environments itself."""
    files = {"github": ".github/workflows/*.y*ml", "gitlab": ".gitlab-ci.yml"}
    if ci not in files:
        return True
    job = re.compile(rf"(?m)^\s*deploy-{name}:|\bmake deploy\b[^\n]*\bENV={name}(?![\w-])")
    return any(job.search(text_of(file) or "") for file in folder.glob(files[ci]))


def has_conflict(text: str | None) -> bool:
    """Tell whether a text holds the markers of a conflict that an upgrade wrote."""
    return f"\n<<<<<<< {_OURS}\n" in f"\n{text or ''}"


def _differences(
    target: TargetEnvironment, environment: EnvironmentSpec, names: set[str]
) -> Iterator[tuple[str, object, object]]:
    promotion = environment.promotion
    pairs = (
        ("account", target.account, environment.account or ""),
        ("region", target.region, environment.region),
        ("promotion.source", target.source, promotion.source if promotion.source in names else None),
        ("promotion.approval", target.approval, promotion.approval),
    )
    return (pair for pair in pairs if pair[1] != pair[2])


def planned_changes(
    folder: Path, record: RepositoryRecord, given: Mapping[str, str | None]
) -> tuple[UpgradedFile, ...]:
    """Return what an upgrade changes, by path; endpoints and environments belong to the team.

    Args:
        given: Answers that replace recorded ones.

    Raises:
        SpecError: SEA482, an answer is wrong; SEA483, an environment has no account; SEA101, a link leads out of the
            folder; SEA452, there is no git.
    """
    environments = folder / "environments"
    targets = targets_of(promotion_order(environments), environments)
    if not targets:
        message, hint = "no environment on AWS is left, and the workflows deploy to some", "add one, with its account"
        raise SpecError.of("SEA483", message, where=environments.as_posix(), hint=hint)
    answers = replace(record.answers, targets=targets, **given)  # type: ignore[arg-type] # checked next
    answers.check()
    new = {path: text for path, text in repository_files(answers, folder).items() if not path.startswith(OWN)}
    changes = [
        change
        for path in sorted({*record.texts, *new})
        if (change := _change(folder, path, record, new.get(path))) is not None
    ]
    # Of what it holds, not of its text: another zlib compresses the same to other bytes.
    if (record.version, record.answers, record.texts) != (seatrial.__version__, answers, new):
        changes.append(UpgradedFile(RECORD, "changed", text_of(folder / RECORD), record_text(answers, new)))
    check_links(folder, (change.path for change in changes if change.outcome != "kept"))
    return tuple(changes)


def _change(folder: Path, path: str, record: RepositoryRecord, new: str | None) -> UpgradedFile | None:
    """Return what becomes of a file; None where nothing does."""
    file, base = folder / path, record.texts.get(path)
    if file.is_symlink():
        return None if new == base else UpgradedFile(path, "kept", None, None, "it is a link: upgrade what it leads to")
    try:
        now = text_of(file)
        is_text = (now != "" or (file.is_file() and not file.stat().st_size)) and "\0" not in (now or "")
        line_end = "\r\n" if now and b"\r\n" in file.read_bytes() else "\n"
    except OSError as error:
        raise SpecError.of("SEA101", f"can't be read: {error.strerror}", where=file.as_posix()) from error
    if not is_text:
        return UpgradedFile(path, "kept", now, now, "it is no text file")
    if has_conflict(now):
        return UpgradedFile(path, "conflict", now, now, "choose a side of each first")
    change = _merge(path, (now, base, new), record.version)
    if change is None or change.after is None:
        return change
    return replace(change, after=change.after.replace("\n", line_end))


def _merge(path: str, texts: tuple[str | None, str | None, str | None], version: str) -> UpgradedFile | None:
    """Return what becomes of a text: it, its base and the new one decide, as in a merge of git."""
    now, base, new = texts
    if new in (now, base):
        return None
    reason = ""
    if now is None and base is not None:
        reason = "it was deleted here"
    elif new is None and now != base:
        reason = "no release writes it any more, and it was changed here: delete it if it is not needed"
    if reason:
        return UpgradedFile(path, "kept", now, now, reason)
    if new is None or now is None or now == base:
        outcome: Outcome = "removed" if new is None else "added" if now is None else "changed"
        return UpgradedFile(path, outcome, now, new)
    labels = (_OURS, f"Seatrial {version}", f"Seatrial {seatrial.__version__}")
    merged, is_clean = merge_texts((now, base or "", new), labels)
    return None if merged == now else UpgradedFile(path, "merged" if is_clean else "conflict", now, merged)


def write_changes(folder: Path, changes: tuple[UpgradedFile, ...], *, force: bool) -> None:
    """Write an upgrade: all of it, or nothing.

    Args:
        force: Also where git could not bring back what was there.

    Raises:
        SpecError: SEA672, git has changes that are not committed, or the folder is in no repository of git; SEA101, a
            file can't be written.
    """
    if not force:
        _check_committed(folder)
    try:
        write_together(folder, {each.path: each.after for each in changes if each.after != each.before})
    except OSError as error:
        message = f"can't be written: {error.strerror}"
        raise SpecError.of("SEA101", message, where=str(error.filename or folder)) from error


def _check_committed(folder: Path) -> None:
    hint = "commit or undo them first, so that git can undo the upgrade; or --force"
    try:
        paths = uncommitted_paths(folder)
    except SpecError as error:
        message = "git keeps nothing of this folder"
        raise SpecError.of(
            "SEA672", message, where=folder.as_posix(), hint="git init and commit; or --force"
        ) from error
    if paths:
        more = f" and {len(paths) - 1} more" if paths[1:] else ""
        message = f"changes are not committed: {paths[0]}{more}"
        raise SpecError.of("SEA672", message, where=folder.as_posix(), hint=hint)
