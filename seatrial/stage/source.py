"""Files of one model to copy, wherever they come from."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import tempfile
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial_base.errors import StageError
from seatrial_base.files import follow_links
from seatrial_base.findings import Finding, Place
from seatrial_base.units import MIB

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable, Iterator, Sequence
    from contextlib import AbstractContextManager

    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling


OTHER_WEIGHTS = (".bin", ".pth", ".pt")
"""Suffixes of weights that a model's repository often holds a second time with its safetensors files."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a model.

    Attributes:
        name: Its path below the model's folder, with forward slashes.
        listed_digest: The digest that the source itself lists, as `sha256:HEX` or `git-sha1:HEX` (the blob's id);
            `None` when it lists none, as a folder.
        fetch: Lends the file on this machine for as long as the context lasts; safe to call from several threads.
    """

    name: str
    size_bytes: int
    listed_digest: str | None
    fetch: Callable[[], AbstractContextManager[Path]]


@dataclass(frozen=True, slots=True)
class ModelFiles:
    """The files of one model.

    Attributes:
        model: Hub id, or the folder's name.
        revision: The commit that was resolved; `None` for a folder.
    """

    model: str
    revision: str | None
    files: tuple[SourceFile, ...]

    @property
    def size_bytes(self) -> int:
        """Size of all files together."""
        return sum(file.size_bytes for file in self.files)


def select(source: ModelFiles, *, include: Sequence[str], exclude: Sequence[str]) -> ModelFiles:
    """Keep the files that match one of `include` (empty: every file) and none of `exclude`.

    A pattern is a shell pattern on the whole name, in which `*` matches slashes too: `original/*`, `*.safetensors`.

    Raises:
        StageError: SEA360 when nothing is left.
    """
    kept = tuple(
        file
        for file in source.files
        if (not include or _matches(file.name, include)) and not _matches(file.name, exclude)
    )
    if not kept:
        message = f"--include and --exclude leave none of the {len(source.files)} files"
        raise StageError.of("SEA360", message, where=source.model, hint="widen --include or narrow --exclude")
    return ModelFiles(source.model, source.revision, kept)


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def held_twice(source: ModelFiles) -> tuple[str, ...]:
    """Return the patterns of weights next to safetensors files, which engines prefer: copying them is waste."""
    names = [file.name for file in source.files]
    if not any(name.endswith(".safetensors") for name in names):
        return ()
    return tuple(f"*{suffix}" for suffix in OTHER_WEIGHTS if any(name.endswith(suffix) for name in names))


_COMMIT = re.compile(r"[0-9a-f]{40}")
_GATED = "accept its licence on the hub, and log in with `hf auth login` or set HF_TOKEN"
_OFFLINE = "check connection, proxy and HF_ENDPOINT, or stage a folder"


def is_commit(revision: str) -> bool:
    """Return whether a revision is a whole commit, which can't move as a branch or a tag can."""
    return _COMMIT.fullmatch(revision) is not None


def read_hub(model: str, revision: str | None, scratch: Path, *, endpoint: str | None = None) -> ModelFiles:
    """Return the files of a hub repository at the commit that a revision names now.

    A file is downloaded into `scratch` while it is lent, and deleted afterwards: the machine needs room for as many
    files as are copied at once, not for the model. The library resumes and retries on its own, and takes the token
    from HF_TOKEN or the user's login.

    Args:
        model: Hub id.
        revision: Branch, tag or commit; `None` for the main branch.
        scratch: An existing folder.
        endpoint: Address of another hub; `None` for HF_ENDPOINT, else the public one.

    Raises:
        StageError: SEA360 when the repository or the revision can't be read, or the hub's client is not installed.
    """
    try:
        from huggingface_hub import HfApi  # noqa: PLC0415 (an optional dependency)
    except ImportError as error:
        hint = "pip install huggingface_hub, or download the model and stage its folder"
        raise StageError.of("SEA360", "the package huggingface_hub is not installed", where=model, hint=hint) from error
    api = HfApi(endpoint=endpoint, library_name="seatrial")
    try:
        info = api.model_info(model, revision=revision, files_metadata=True)
    except _failures() as error:
        what = f"revision {revision}" if revision else "the repository"
        raise _refused(model, f"{what} can't be read", error) from error
    if info.sha is None or not info.siblings:
        raise StageError.of("SEA360", "the hub lists no files", where=model)
    files = (_file(api, model, info.sha, sibling, scratch) for sibling in info.siblings)
    return ModelFiles(model, info.sha, tuple(sorted(files, key=lambda file: file.name)))


def _file(api: HfApi, model: str, commit: str, sibling: RepoSibling, scratch: Path) -> SourceFile:
    listed_digest = f"sha256:{sibling.lfs.sha256}" if sibling.lfs else f"git-sha1:{sibling.blob_id}"
    fetch = partial(_lent, api, model, commit, sibling.rfilename, scratch)
    return SourceFile(sibling.rfilename, sibling.size or 0, listed_digest, fetch)


@contextmanager
def _lent(api: HfApi, model: str, commit: str, name: str, scratch: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            path = Path(api.hf_hub_download(model, name, revision=commit, local_dir=folder))
        except _failures() as error:
            raise _refused(name, "it can't be downloaded", error) from error
        yield path


def _failures() -> tuple[type[Exception], ...]:
    """Return what the hub's client raises: its own errors, and those of its transport, which are no OSError."""
    from huggingface_hub import errors  # noqa: PLC0415 (an optional dependency)

    transport = errors.HfHubHTTPError.__mro__[1]
    failures = (OSError, errors.HFValidationError, errors.XetDownloadError, errors.FileMetadataError)
    return (*failures, transport) if issubclass(transport, Exception) else failures


def _refused(where: str, what: str, error: Exception) -> StageError:
    first = next((line for line in str(error).splitlines() if line), type(error).__name__)
    kind = type(error).__name__
    hint = _GATED if "Gated" in kind or "Repository" in kind else _OFFLINE if "Connect" in kind else ""
    return StageError.of("SEA360", f"{what}: {first}", where=where, hint=hint)


def read_folder(folder: Path) -> ModelFiles:
    """Return the files of a folder and of the folders in it; names that begin with a dot are left out.

    A link to a file is read through, as the hub's cache has them; a link to a folder is not followed.

    Raises:
        StageError: SEA360 when the folder or a file of it can't be read, or there is none.
    """
    files: list[SourceFile] = []
    problems: list[Finding] = []

    def unreadable(error: OSError) -> None:
        problems.append(Finding("SEA360", Place.at(str(error.filename)), f"can't be read: {error.strerror}"))

    for path in _files(folder, unreadable):
        try:
            size_bytes = path.stat().st_size
        except OSError as error:
            unreadable(error)
            continue
        files.append(SourceFile(path.relative_to(folder).as_posix(), size_bytes, None, partial(_lent_by_folder, path)))
    if problems:
        raise StageError(problems)
    if not files:
        raise StageError.of("SEA360", "the folder holds no file", where=folder.as_posix())
    return ModelFiles(follow_links(folder).name, None, tuple(sorted(files, key=lambda file: file.name)))


def _lent_by_folder(path: Path) -> AbstractContextManager[Path]:
    return nullcontext(path)


def _files(folder: Path, unreadable: Callable[[OSError], None]) -> Iterator[Path]:
    for parent, folders, names in os.walk(folder, onerror=unreadable):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(parent) / name for name in names if not name.startswith("."))


SMALLEST_PART_BYTES = 32 * MIB
MOST_PARTS = 10_000  # Amazon S3 user guide, multipart upload limits


class StoppedError(Exception):
    """The user stopped the work; parts that were written stay, and the next run goes on from them."""


@dataclass(frozen=True, slots=True)
class Checksums:
    """What one reading of a file gives.

    Attributes:
        sha256: Of the whole file, in hexadecimal digits.
        git_sha1: The id of the file as a git blob, in hexadecimal digits.
        parts: SHA-256 of each part that it is uploaded in, in Base64 as S3 writes it; one entry for a small file.
    """

    sha256: str
    git_sha1: str
    parts: tuple[str, ...]

    @property
    def s3(self) -> str:
        """Return the ChecksumSHA256 that S3 gives the object.

        Of an object put whole it is the file's SHA-256; of one uploaded in parts it is composite: the SHA-256 of the
        parts' digests, a hyphen, and their number (Amazon S3 user guide, checking object integrity).
        """
        if len(self.parts) == 1:
            return self.parts[0]
        joined = b"".join(base64.b64decode(part) for part in self.parts)
        return f"{_base64(hashlib.sha256(joined).digest())}-{len(self.parts)}"

    def agrees(self, listed_digest: str | None) -> bool:
        """Return whether the digest that a source lists is this file's; `None` agrees."""
        return listed_digest is None or listed_digest in (f"sha256:{self.sha256}", f"git-sha1:{self.git_sha1}")


def part_bytes(size_bytes: int) -> int:
    """Return the size of a part of a file: 32 MiB, or the whole MiB with which 10,000 parts suffice.

    It depends on the size only, so that a later run finds the parts of an earlier one.
    """
    needed = -(-size_bytes // MOST_PARTS)
    return max(SMALLEST_PART_BYTES, -(-needed // MIB) * MIB)


def checksums_of(path: Path, size_bytes: int, stop: threading.Event | None = None) -> Checksums:
    """Read a file once, part by part, and return its checksums.

    Args:
        size_bytes: Its size as it was listed, which sets the size of the parts.

    Raises:
        StoppedError: Once `stop` is set.
        OSError: When it can't be read.
    """
    whole = hashlib.sha256()
    blob = hashlib.sha1(f"blob {size_bytes}\0".encode(), usedforsecurity=False)
    parts: list[str] = []
    with path.open("rb") as file:
        while (part := file.read(part_bytes(size_bytes))) or not parts:
            if stop is not None and stop.is_set():
                raise StoppedError
            whole.update(part)
            blob.update(part)
            parts.append(_base64(hashlib.sha256(part).digest()))
    return Checksums(whole.hexdigest(), blob.hexdigest(), tuple(parts))


def hex_of(checksum_sha256: str) -> str:
    """Return the hexadecimal digits of a SHA-256 in Base64."""
    return base64.b64decode(checksum_sha256).hex()


def base64_of(sha256: str) -> str:
    """Return the Base64 of a SHA-256 in hexadecimal digits."""
    return _base64(bytes.fromhex(sha256))


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()
