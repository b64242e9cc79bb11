"""The code of the managed benchmark's Lambda functions, laid out as the packages are."""

from __future__ import annotations

from pathlib import Path

import seatrial_cdk
from seatrial.packaging import zip_bytes


def runtime_archive() -> bytes:
    """Return the zip archive of the handlers; equal sources give equal bytes."""
    library = Path(seatrial_cdk.__path__[0])
    package = library / "managed_benchmark"
    modules = [library / "__init__.py", package / "__init__.py", *(package / "runtime").glob("*.py")]
    return zip_bytes({module.relative_to(library.parent).as_posix(): module.read_bytes() for module in modules})
