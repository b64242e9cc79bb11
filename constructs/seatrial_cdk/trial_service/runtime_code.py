"""The code of the trial's Lambda function: one archive, laid out as the packages are, so that imports read the same.

Every package on the way holds nothing but a docstring, so that the archive needs neither CDK nor pydantic.
"""

from __future__ import annotations

from pathlib import Path

import seatrial
import seatrial_cdk
from seatrial.packaging import zip_bytes

_SHARED_MODULES = ("__init__.py", "bounds.py", "errors.py", "printable.py", "secrets.py", "tags.py", "units.py")
_SHARED_PACKAGES = ("bench", "measure", "payload")


def runtime_archive() -> bytes:
    """Return the zip archive of the handler, of the bench and the payloads; equal sources give equal bytes."""
    core, library = Path(seatrial.__path__[0]), Path(seatrial_cdk.__path__[0])
    modules = [
        *(core / name for name in _SHARED_MODULES),
        *(module for package in _SHARED_PACKAGES for module in (core / package).rglob("*.py")),
        library / "__init__.py",
        library / "trial_service" / "__init__.py",
        *(library / "trial_service" / "runtime").glob("*.py"),
    ]
    roots = {core: core.parent, library: library.parent}
    return zip_bytes(
        {
            module.relative_to(root).as_posix(): module.read_bytes()
            for package, root in roots.items()
            for module in modules
            if module.is_relative_to(package)
        }
    )
