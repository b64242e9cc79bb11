"""Upgrades a team's repository: merges what this release writes into what a team made of an earlier one's files."""

from __future__ import annotations

import difflib
import json
import zlib
from base64 import b64decode
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, get_args

import seatrial
from seatrial.operations.checkout import merge_texts, uncommitted_paths
from seatrial.repository.answers import Answers, Ci, TargetEnvironment, targets_of
from seatrial.repository.write import OWN, RECORD, RECORDED, check_links, record_text, repository_files, text_of
from seatrial.specs.pipeline import promotion_order
from seatrial_base.errors import SpecError
from seatrial_base.files import write_together
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial.specs.environment import EnvironmentSpec

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
        texts = {path: zlib.decompress(b64decode(text)).decode() for path, text in document["files"].items()}
        return RepositoryRecord(document["seatrial"], answers, texts)
    except FileNotFoundError:
        message = "nothing records what wrote this repository"
        hint = "seatrial init DIR --update adds what is absent, the record too; what differs has no base then"
        raise SpecError.of("SEA671", message, where=file.as_posix(), hint=hint) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError, zlib.error) as error:
        message, hint = "the record can't be read", f"take it from git: git checkout -- {RECORD}"
        raise SpecError.of("SEA671", message, where=file.as_posix(), hint=hint) from error


def _recorded(answers: dict[str, Any]) -> dict[str, Any]:
    given = {name: answers.get(name) for name in RECORDED}
    if not all(isinstance(each, str | None) for each in given.values()) or given["ci"] not in get_args(Ci):
        raise ValueError(given)
    return given


def environment_problems(environments: Path) -> Iterator[Finding]:
    """Yield how the environments of a repository differ from those that its workflows were written for (SEA670).

    Workflows name each environment, its roles and its approval, so that no job that holds a role reads from a checkout
    which one to assume; a file that no job knows would be deployed, checked and promoted by nothing.
    """
    folder = environments.parent
    if not (folder / RECORD).is_file():
        return
    try:
        written = {target.name: target for target in read_record(folder).answers.targets}
    except SpecError as error:
        yield from error.problems
        return
    try:
        kept = tuple(each for each in promotion_order(environments) if not each.is_embedded)
    except SpecError:  # told where the environments are read
        return
    hint = f"seatrial init {folder.as_posix()} --upgrade shows what changes; with --write it is written"
    for environment in kept:
        place = (environments / f"{environment.name}.yaml").as_posix()
        if (target := written.get(environment.name)) is None:
            yield Finding("SEA670", Place.at(place), f"no workflow knows {environment.name}", hint)
            continue
        for field, before, now in _differences(target, environment):
            message = f"the workflows were written for {before}, not {now}"
            yield Finding("SEA670", Place.at(place, field), message, hint)
    for name in written.keys() - {environment.name for environment in kept}:
        where = Place.at((folder / RECORD).as_posix())
        yield Finding("SEA670", where, f"the workflows deploy {name}, which has no file", hint)


def _differences(target: TargetEnvironment, environment: EnvironmentSpec) -> Iterator[tuple[str, object, object]]:
    promotion = environment.promotion
    pairs = (
        ("account", target.account, environment.account or ""),
        ("region", target.region, environment.region),
        ("promotion.source", target.source, promotion.source),
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
    """Return what becomes of a file: three texts decide, as of a merge of git; None where nothing does."""
    file, base = folder / path, record.texts.get(path)
    try:
        now = text_of(file)
        is_text = now != "" or (file.is_file() and not file.stat().st_size)
    except OSError as error:
        raise SpecError.of("SEA101", f"can't be read: {error.strerror}", where=file.as_posix()) from error
    reason = ""
    if not is_text:
        reason = "it is no text file"
    elif new in (now, base):
        return None
    elif now is None and base is not None:
        reason = "it was deleted here"
    elif new is None and now != base:
        reason = "no release writes it any more, and it was changed here: delete it if it is not needed"
    if reason:
        return UpgradedFile(path, "kept", now, now, reason)
    if new is None or now is None or now == base:
        outcome: Outcome = "removed" if new is None else "added" if now is None else "changed"
        return UpgradedFile(path, outcome, now, new)
    labels = ("this repository", f"Seatrial {record.version}", f"Seatrial {seatrial.__version__}")
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
        write_together(folder, {each.path: each.after for each in changes if each.outcome != "kept"})
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
