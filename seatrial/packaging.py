"""Archives whose bytes depend on their content only, because an asset's hash decides whether a GPU fleet restarts."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

_ZIP_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date that the format can hold


def zip_bytes(files: Mapping[str, bytes]) -> bytes:
    """Pack files by name into a zip archive: sorted, no times, readable by everyone (mode 644)."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _ZIP_EPOCH)
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, files[name], zipfile.ZIP_DEFLATED, compresslevel=9)
    return buffer.getvalue()


def tar_gz_bytes(files: Mapping[str, bytes]) -> bytes:
    """Pack files by name into a gzipped tar archive: sorted, no times, owner 0, mode 644."""
    buffer = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=buffer, mtime=0) as zipped,
        tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(files[name]), 0o644
            archive.addfile(entry, io.BytesIO(files[name]))
    return buffer.getvalue()
