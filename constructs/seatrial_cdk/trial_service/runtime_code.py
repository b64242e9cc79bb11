"""The code of the trial's Lambda function: one archive, laid out as the packages are, so that imports read the same.

Every package on the way holds nothing but a docstring, so that the archive needs neither CDK nor pydantic.
"""

from __future__ import annotations

from pathlib import Path

import seatrial_base
import seatrial_cdk
import seatrial_load
from seatrial.packaging import zip_bytes

_SHARED_MODULES = (
    "__init__.py",
    "bounds.py",
    "errors.py",
    "markdown.py",
    "printable.py",
    "secrets.py",
    "tags.py",
    "units.py",
)


def runtime_archive() -> bytes:
    """Return the zip archive of the handler and of the load tester; equal sources give equal bytes."""
    base, load, library = (Path(package.__path__[0]) for package in (seatrial_base, seatrial_load, seatrial_cdk))
    modules = [
        *(base / name for name in _SHARED_MODULES),
        *load.rglob("*.py"),
        library / "__init__.py",
        library / "trial_service" / "__init__.py",
        *(library / "trial_service" / "runtime").glob("*.py"),
    ]
    return zip_bytes(
        {
            module.relative_to(package.parent).as_posix(): module.read_bytes()
            for package in (base, load, library)
            for module in modules
            if module.is_relative_to(package)
        }
    )
