"""A model on the Hugging Face hub, at one commit."""

from __future__ import annotations

import re
import tempfile
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.errors import StageError
from seatrial.stage.source import Source, SourceFile

if TYPE_CHECKING:
    from collections.abc import Iterator

    from huggingface_hub import HfApi
    from huggingface_hub.hf_api import RepoSibling

_COMMIT = re.compile(r"[0-9a-f]{40}")
_GATED = "accept its licence on the hub, and log in with `hf auth login` or set HF_TOKEN"
_OFFLINE = "check the connection, the proxy and HF_ENDPOINT; without a way to the hub, stage a folder"


def is_commit(revision: str) -> bool:
    """Return whether a revision is a whole commit, which can't move as a branch or a tag can."""
    return _COMMIT.fullmatch(revision) is not None


def read_hub(model: str, revision: str | None, scratch: Path, *, endpoint: str | None = None) -> Source:
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
    return Source(model, info.sha, tuple(sorted(files, key=lambda file: file.name)))


def _file(api: HfApi, model: str, commit: str, sibling: RepoSibling, scratch: Path) -> SourceFile:
    told = f"sha256:{sibling.lfs.sha256}" if sibling.lfs else f"git-sha1:{sibling.blob_id}"
    fetch = partial(_lent, api, model, commit, sibling.rfilename, scratch)
    return SourceFile(sibling.rfilename, sibling.size or 0, told, fetch)


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
    found = (OSError, errors.HFValidationError, errors.XetDownloadError, errors.FileMetadataError)
    return (*found, transport) if issubclass(transport, Exception) else found


def _refused(where: str, what: str, error: Exception) -> StageError:
    first = next((line for line in str(error).splitlines() if line), type(error).__name__)
    kind = type(error).__name__
    hint = _GATED if "Gated" in kind or "Repository" in kind else _OFFLINE if "Connect" in kind else ""
    return StageError.of("SEA360", f"{what}: {first}", where=where, hint=hint)
