"""Synthesis in this process: the assembly that the CDK CLI writes, in a seventh of its processor time.

Each start of the CDK CLI loads Python, Node and the CDK's library anew; here that is done once.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from aws_cdk import App

from seatrial_stacks.app_stacks import define_stacks

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

CDK_JSON: Final = Path(__file__).parents[2] / "cdk.json"


def synthesize(
    assembly: Path,
    context: Mapping[str, str | Path],
    define: Callable[[App], None] = define_stacks,
    *,
    is_validated: bool = False,
) -> Path:
    """Synthesize an app with the feature flags of the repository, and return the folder of its assembly.

    The CDK's own check of templates is left out unless it is asked for: it takes longer than the synthesis.

    Args:
        assembly: The folder; what is there stays, unless the app has a file of the same name.
        context: What `-c` gives to the CDK CLI.
        define: Adds the stacks.
        is_validated: Let the CDK hold the templates against CloudFormation's schemas.

    Raises:
        SeatrialError: As the app does.
    """
    flags: dict[str, object] = json.loads(CDK_JSON.read_text(encoding="utf-8"))["context"]
    given = {name: f"{value}" for name, value in context.items()}
    app = App(
        outdir=f"{assembly}",
        analytics_reporting=False,
        builtin_cloud_formation_validation=is_validated,
        context={**flags, **given},
    )
    define(app)
    app.synth()
    return assembly
