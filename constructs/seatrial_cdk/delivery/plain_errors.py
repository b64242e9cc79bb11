"""Errors of users in an app: the message, and no traceback."""

from __future__ import annotations

import gc
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from seatrial.node import check_node
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.secrets import redacted
from seatrial_base.text import printable

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def plain_errors() -> Iterator[None]:
    """Print an error of Seatrial to stderr and exit with its code; import `aws_cdk` inside, so that Node is checked.

    Findings of a validation (`HostingChecks`) exit with 1.

    ```python
    with plain_errors():
        from aws_cdk import App

        ...
        app.synth()
    ```
    """
    try:
        check_node()
        yield
    except SeatrialError as error:
        sys.stderr.write(f"{printable(redacted(str(error)))}\n")
        sys.exit(error.exit_code)
    except ModuleNotFoundError as error:
        if error.name not in ("aws_cdk", "constructs"):
            raise
        missing = SpecError.of("SEA101", f"{error.name} is not installed", hint="run `pip install 'seatrial[cdk]'`")
        sys.exit(str(missing))
    except RuntimeError as error:  # of the CDK, which has reported every finding of the validation
        if not str(error).startswith("ValidationFailed"):
            raise
        sys.exit(f"{error}")
    finally:
        gc.freeze()  # else Python walks all of aws-cdk-lib when the app ends: 0.4 s of CPU
