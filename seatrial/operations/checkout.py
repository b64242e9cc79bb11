"""A revision of git next to the checkout: its files for a while, and the differences from it."""

from __future__ import annotations

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import SpecError
from seatrial_base.files import follow_links

if TYPE_CHECKING:
    from collections.abc import Iterator

_OF_GIT = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE", "GIT_PREFIX", "GIT_COMMON_DIR")
"""Variables that a hook of git sets, and that would lead another git to the wrong place."""
_NAMES = ("diff", "--name-only", "--no-renames", "--no-ext-diff", "-z")
_MOST_CONFLICTS = 127
"""The largest exit code of `git merge-file` that counts conflicts (its manual); a larger one is an error."""
MERGE_BASE = "..."
"""The end of a revision, as in `git diff main...`."""


def moved(path: Path, top: Path, checkout: Path) -> Path:
    """Return where a file of the repository is in a checkout of another revision.

    Raises:
        SpecError: SEA452 when it is not in the repository.
    """
    if not path.is_relative_to(top):
        hint = "give a spec and environments of the repository"
        message = f"it is not in the repository {top.as_posix()}"
        raise SpecError.of("SEA452", message, where=path.as_posix(), hint=hint)
    return checkout / path.relative_to(top)


def git_repository_of(folder: Path) -> Path:
    """Return the folder of the repository that a folder belongs to.

    Raises:
        SpecError: SEA452 when there is none, or no git.
    """
    return follow_links(Path(_git(folder, "rev-parse", "--show-toplevel")))


def commit_of(folder: Path, revision: str) -> str:
    """Return the commit that a revision names; with three dots behind it, its merge base with the checkout.

    Raises:
        SpecError: SEA452 when there is no such revision, or no merge base.
    """
    name = revision.removesuffix(MERGE_BASE)
    commit = _git(
        folder, "rev-parse", "--quiet", "--verify", "--end-of-options", f"{name}^{{commit}}", what=f"no revision {name}"
    )
    if name == revision:
        return commit
    return _git(folder, "merge-base", commit, "HEAD", what=f"no merge base of {name} and HEAD")


def commits_ahead(folder: Path, commit: str) -> int:
    """Return how many commits another commit has that the checkout lacks, as far as the clone holds them.

    Raises:
        SpecError: SEA452 when git fails.
    """
    return int(_git(folder, "rev-list", "--count", f"HEAD..{commit}"))


def changed_paths(top: Path, commit: str) -> tuple[str, ...]:
    """Return the files that differ between a commit and the checkout, those that git does not ignore, sorted.

    Raises:
        SpecError: SEA452 when git fails.
    """
    tracked = _git(top, *_NAMES, commit, "--")
    new = _git(top, "ls-files", "--others", "--exclude-standard", "-z")
    return tuple(sorted({name for name in f"{tracked}\0{new}".split("\0") if name}))


def added_paths(folder: Path, commit: str) -> tuple[str, ...]:
    """Return the files that another commit changes beyond what it has in common with the checkout's.

    Without a common commit in the clone, they are all that differ.

    Raises:
        SpecError: SEA452 when git fails.
    """
    try:
        common = _git(folder, "merge-base", commit, "HEAD")
    except SpecError:
        # A shallow clone may lack the common commit: then whatever differs counts as code of others, which is
        # the safe side.
        common = "HEAD"
    return tuple(filter(None, _git(folder, *_NAMES, common, commit, "--").split("\0")))


@contextmanager
def checkout_of(root: Path, revision: str, checkout: Path) -> Iterator[tuple[Path, Path]]:
    """Check a revision out into a new folder for a while; yield the repository's folder and the checkout's.

    Raises:
        SpecError: SEA452 when it can't be checked out.
    """
    top, commit = git_repository_of(root), commit_of(root, revision)
    try:
        # A post-checkout hook would run for a folder that is gone in a minute.
        _git(root, "-c", "core.hooksPath=/dev/null", "worktree", "add", "--detach", "--quiet", f"{checkout}", commit)
        yield top, follow_links(checkout)
    finally:
        if checkout.exists():
            _git(root, "worktree", "remove", "--force", f"{checkout}")


def uncommitted_paths(folder: Path) -> tuple[str, ...]:
    """Return the paths below a folder that git would not bring back: changed, or not known to it; ignored ones aside.

    Raises:
        SpecError: SEA452 when it is in no repository, or there is no git.
    """
    lines = _git(folder, "status", "--porcelain", "--untracked-files=all", "-z", "--no-renames", "--", ".").split("\0")
    return tuple(line.lstrip().partition(" ")[2].lstrip() for line in lines if line)


def merge_texts(texts: tuple[str, str, str], labels: tuple[str, str, str]) -> tuple[str, bool]:
    """Merge three texts (ours, their base, theirs) as git does; return the result, and whether it has no conflict.

    Raises:
        SpecError: SEA452 when there is no git.
    """
    with tempfile.TemporaryDirectory() as scratch:
        files = [Path(scratch, f"{number}") for number in range(len(texts))]
        for file, text in zip(files, texts, strict=True):
            file.write_text(text, encoding="utf-8", newline="\n")
        named = [word for label in labels for word in ("-L", label)]
        done = _run(Path(scratch), "merge-file", "--stdout", *named, *(file.name for file in files))
    if done.returncode > _MOST_CONFLICTS:
        raise SpecError.of("SEA452", done.stderr.strip() or f"exit code {done.returncode}", where="git merge-file")
    return done.stdout, done.returncode == 0


def _git(folder: Path, *arguments: str, what: str = "") -> str:
    done = _run(folder, *arguments)
    if done.returncode:
        message = done.stderr.strip() or what or f"exit code {done.returncode}"
        hint = "give a revision that `git rev-parse` knows; fetch it first in a shallow clone"
        raise SpecError.of("SEA452", message, where=folder.as_posix(), hint=hint)
    return done.stdout.strip()


def _run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Within a hook, git's own variables name the hook's repository and would override the folder given here.
    variables = {name: value for name, value in os.environ.items() if name not in _OF_GIT}
    try:
        return subprocess.run(
            ["git", *arguments],  # noqa: S607 (the user's git)
            cwd=folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise SpecError.of("SEA452", f"git can't be started: {error.strerror}", hint="install git") from error
