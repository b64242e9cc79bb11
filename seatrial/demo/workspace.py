"""The folder that the demo works in: a copy of the spec and environment, which it edits as a user would."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from typing import TYPE_CHECKING

from seatrial.errors import LocalError
from seatrial.plan.lock import write_lock
from seatrial.plan.planner import make_plan
from seatrial.spec.load import load_spec

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.plan.document import Plan
    from seatrial.spec.load import LoadedSpec

ENDPOINT = "llama-2-7b-chat"
ENVIRONMENT = "local"


@dataclass(frozen=True, slots=True)
class Workspace:
    """Paths of the demo.

    Attributes:
        root: The repository.
        folder: The demo's own folder below it.
    """

    root: Path
    folder: Path

    @property
    def spec(self) -> Path:
        """The copied spec."""
        return self.folder / "endpoints" / f"{ENDPOINT}.yaml"

    @property
    def environments(self) -> Path:
        """The copied folder of environments."""
        return self.folder / "environments"

    @property
    def assembly(self) -> Path:
        """Where the CDK CLI synthesizes to."""
        return self.folder / "cdk.out"

    def load(self) -> LoadedSpec:
        """Load the spec as it stands now."""
        return load_spec(self.spec, ENVIRONMENT, environments=self.environments)

    def lock(self, *, accept_slo_miss: bool = False) -> Plan:
        """Plan the spec as it stands now and write its lock."""
        plan = make_plan(self.load(), accept_slo_miss=accept_slo_miss)
        write_lock(plan, self.spec)
        return plan

    def edit(self, old: str, new: str) -> None:
        """Replace one place of the spec.

        Raises:
            LocalError: SEA606 when the text does not occur exactly once.
        """
        text = self.spec.read_text(encoding="utf-8")
        if text.count(old) != 1:
            message = f"the spec holds {old!r} {text.count(old)} times, not once"
            raise LocalError.of("SEA606", message, where=self.spec.as_posix())
        self.spec.write_text(text.replace(old, new), encoding="utf-8")


def make_workspace(root: Path) -> Workspace:
    """Copy the demo's spec and environments into a fresh folder of a repository.

    Raises:
        LocalError: SEA606 when this is no checkout of the repository.
    """
    missing = [name for name in ("app.py", "cdk.json", f"endpoints/{ENDPOINT}.yaml") if not (root / name).is_file()]
    if missing:
        message = f"{', '.join(missing)} not found"
        raise LocalError.of("SEA606", message, where=root.as_posix(), hint="run it in a checkout of the repository")
    workspace = Workspace(root, root / ".seatrial" / "demo")
    shutil.rmtree(workspace.folder, ignore_errors=True)
    workspace.spec.parent.mkdir(parents=True)
    workspace.environments.mkdir()
    shutil.copy(root / "endpoints" / f"{ENDPOINT}.yaml", workspace.spec)
    for file in (root / "environments").glob("*.yaml"):
        shutil.copy(file, workspace.environments)
    return workspace
