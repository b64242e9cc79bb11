"""Node.js, which `aws-cdk-lib` runs on."""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING

from seatrial_base.errors import SeatrialError

if TYPE_CHECKING:
    from collections.abc import Mapping

NODE_VARIABLE = "JSII_NODE"
"""The environment variable in which jsii looks for Node before PATH."""


def check_node(variables: Mapping[str, str] = os.environ) -> None:
    """Check that `aws-cdk-lib` finds Node.

    Args:
        variables: Environment variables of the app.

    Raises:
        SeatrialError: SEA446 when there is no Node.
    """
    name = variables.get(NODE_VARIABLE, "node")
    if shutil.which(name, path=variables.get("PATH", os.defpath)) is None:
        message = f"{name} is not on PATH, and aws-cdk-lib needs Node.js"
        hint = "install Node.js 22 or newer, or run `pip install 'seatrial[cdk,node]'`"
        raise SeatrialError.of("SEA446", message, hint=hint)
