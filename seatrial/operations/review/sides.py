"""Makes a review of the checkout against a revision of git: both sides, and the files that differ."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.operations.app import app_folder
from seatrial.operations.checkout import changed_paths, checkout_of, commit_of, commits_ahead, git_repository_of, moved
from seatrial.operations.review.affected import refuse_code_of_others
from seatrial.operations.review.review import AskedEndpoints, make_review
from seatrial.operations.review.side import RepositorySide
from seatrial.specs.load import environment_names
from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from seatrial.operations.review.review import Review

SPEC_SUFFIXES = frozenset({".yaml", ".yml"})


def review_of(
    specs: Sequence[Path], environments: Path, revision: str, folder: Path, *, environments_asked: Sequence[str] = ()
) -> Review:
    """Compare the endpoints of a folder with those of a revision.

    Args:
        specs: A folder of specs, or some of its files; a file may be one that only the revision has.
        environments: Folder of environments.
        revision: A revision of git; with three dots behind it, its merge base with the checkout.
        folder: An empty folder for both synthesized sides and the revision's checkout.
        environments_asked: Names of environments; none for all.

    Raises:
        SpecError: SEA101 for a folder or spec that neither side has, SEA109 for such an environment, SEA420 for specs
            of several folders, SEA450 when there is no app, SEA452 when the revision can't be checked out, or has
            code that the checkout lacks.
        SeatrialError: As `make_review`.
    """
    endpoints, names = _endpoints(specs)
    top = git_repository_of(_existing(endpoints))
    commit = commit_of(top, revision)
    new = RepositorySide(
        top=top,
        root=app_folder(endpoints / "spec.yaml"),
        endpoints=follow_links(endpoints),
        environments=follow_links(environments),
    )
    refuse_code_of_others(new, commit)
    with checkout_of(top, commit, folder / "checkout") as (_, checkout):
        old = RepositorySide(
            top=checkout,
            root=moved(new.root, top, checkout),
            endpoints=moved(new.endpoints, top, checkout),
            environments=moved(new.environments, top, checkout),
        )
        _refuse_missing(endpoints, names, old, new)
        _refuse_unknown(environments_asked, old, new)
        asked = AskedEndpoints(names, environments_asked)
        review = make_review(old, new, changed_paths(top, commit), folder / "synthesis", asked=asked)
    return replace(review, ahead=commits_ahead(top, commit))


def folder_of(path: Path) -> Path:
    """Return a folder of specs itself, and the folder of a spec; a folder may be one that only the revision has."""
    return path.parent if path.suffix in SPEC_SUFFIXES and not path.is_dir() else path


def _endpoints(specs: Sequence[Path]) -> tuple[Path, tuple[str, ...] | None]:
    """Return the folder of specs, and the names of those that are asked for; `None` for all."""
    folders = {follow_links(folder_of(spec)) for spec in specs}
    if len(folders) > 1:
        places = ", ".join(folder.as_posix() for folder in sorted(folders))
        hint = "compare one folder after the other"
        raise SpecError.of("SEA420", f"the specs are in several folders: {places}", hint=hint)
    names = None if any(folder_of(spec) == spec for spec in specs) else tuple(spec.stem for spec in specs)
    return folder_of(specs[0]), names


def _existing(folder: Path) -> Path:
    """Return a folder, or the nearest above it that exists: a change may remove every spec."""
    target = follow_links(folder)
    return next(one for one in (target, *target.parents) if one.is_dir())


def _refuse_missing(folder: Path, names: Sequence[str] | None, *sides: RepositorySide) -> None:
    """Refuse what neither side has: nothing would be compared, and no change be told."""
    if names is None:
        missing = [] if any(side.endpoints.is_dir() for side in sides) else [folder]
    else:
        files = {name: f"{name}.yaml" for name in names}
        missing = [
            folder / file for file in files.values() if not any((side.endpoints / file).exists() for side in sides)
        ]
    message, hint = "neither the checkout nor the revision has it", "check the path; it is relative to this folder"
    problems = [Finding("SEA101", Place.at(one.as_posix()), message, hint) for one in missing]
    if problems:
        raise SpecError(problems)


def _refuse_unknown(asked: Sequence[str], *sides: RepositorySide) -> None:
    known = sorted({name for side in sides for name in environment_names(side.environments)})
    hint = f"known environments: {', '.join(known) or 'none'}"
    problems = [
        Finding("SEA109", Place("command line", field="--environment"), f"there is no environment {name}", hint)
        for name in asked
        if name not in known
    ]
    if problems:
        raise SpecError(problems)
