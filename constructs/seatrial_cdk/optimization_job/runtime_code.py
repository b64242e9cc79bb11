"""The code of the optimization jobs' Lambda function: its modules alone, laid out as the packages are."""

from __future__ import annotations

from pathlib import Path

import seatrial_cdk
from seatrial.packaging import zip_bytes


def jobs_archive() -> bytes:
    """Return the zip archive of the function; equal sources give equal bytes."""
    library = Path(seatrial_cdk.__path__[0])
    own = library / "optimization_job"
    modules = [library / "__init__.py", own / "__init__.py", *(own / "runtime").glob("*.py")]
    return zip_bytes({f"seatrial_cdk/{each.relative_to(library).as_posix()}": each.read_bytes() for each in modules})
