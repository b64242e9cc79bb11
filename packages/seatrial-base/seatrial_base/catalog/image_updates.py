"""Which builds came after a deployed one, and what changes with them."""

from __future__ import annotations

from dataclasses import dataclass

from seatrial_base.catalog import images
from seatrial_base.catalog.images import Build, ami_version


@dataclass(frozen=True, slots=True)
class ImageChange:
    """One thing that another build brings.

    Attributes:
        what: `LMI`, `vLLM`, `CUDA`, `InferenceAmiVersion` or `version`.
        before: Of the deployed build; `None` when it is not known or the service decides.
        after: Of the newer build.
    """

    what: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Update:
    """What the catalog lists after a build, in a region.

    Attributes:
        build: The deployed build.
        newer: Documented builds that came after it, oldest first.
        unread: Builds that came after it whose behaviour nobody has read, oldest first.
        changes: From the deployed build to the last of `newer`; none when there is none.
    """

    build: Build
    newer: tuple[Build, ...]
    unread: tuple[Build, ...]
    changes: tuple[ImageChange, ...]


def update_of(build: Build, region: str) -> Update:
    """Return what is listed after a build for a region."""
    after = [other for other in images.newer(build) if region in images.regions(other)]
    newer = tuple(other for other in after if other.documented)
    unread = tuple(other for other in after if not other.documented)
    return Update(build, newer, unread, changes(build, newer[-1]) if newer else ())


def changes(before: Build, after: Build) -> tuple[ImageChange, ...]:
    """Return what differs between two builds of a line."""
    pairs = (
        ImageChange("LMI", _text(before.lmi), _text(after.lmi)),
        ImageChange("version", before.version, after.version),
        ImageChange(*_bundled(before, after)),
        ImageChange("CUDA", _cuda(before.cuda), _cuda(after.cuda)),
        ImageChange("InferenceAmiVersion", ami_version(before.cuda), ami_version(after.cuda)),
    )
    return tuple(change for change in pairs if change.before != change.after)


def _text(number: int | None) -> str | None:
    return None if number is None else str(number)


def _bundled(before: Build, after: Build) -> tuple[str, str | None, str | None]:
    """Return the library's name with its two versions."""
    texts = [build.bundles or "" for build in (before, after)]
    name = max(text.rpartition(" ")[0] for text in texts) or "library"
    versions = [text.rpartition(" ")[2] or None for text in texts]
    return name, versions[0], versions[1]


def _cuda(cuda: str | None) -> str | None:
    """Return `13.0` for `cu130`."""
    return None if cuda is None else f"{cuda[2:-1]}.{cuda[-1]}"
