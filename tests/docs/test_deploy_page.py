"""The page on deploying shows the stacks that the committed locks make."""

from __future__ import annotations

import re
from pathlib import Path

from seatrial.deployment.document import service_stack
from seatrial.deployment.load import find_deployments
from seatrial.operations.deployment_outcome import OutcomeKind

ROOT = Path(__file__).parents[2]


def test_the_exit_codes_are_those_of_the_command() -> None:
    text = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    rows = [f"| {row.code} | `{row.head}` | {row.meaning} |" for row in (kind.value for kind in OutcomeKind)]
    assert re.findall(r"^\| \d+ \| `[A-Z ]+` \| .*? \|", text, re.MULTILINE) == rows


def test_the_shown_stacks_are_those_of_the_app() -> None:
    text = (ROOT / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    shown = re.search(r"^\$ cdk ls\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    found = find_deployments(ROOT / "endpoints", ROOT / "environments").deployments
    services = {service_stack(one.environment.name) for one in found if one.endpoint.trial.mode != "off"}
    assert shown is not None
    assert set(shown[1].split()) == {one.stack_name for one in found} | services
