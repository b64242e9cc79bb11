"""A locked endpoint whose plan is in doubt: a much cheaper deployment misses the SLO by less than the band."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.deployment.trial import trial_request
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.probe.pinned import deployments_to_probe, pin
from seatrial.specs.load import load_spec
from seatrial_load.documents.request import Expected, TrialTarget
from seatrial_load.documents.result import TrialResult, Verdict
from tests.constructs.conftest import level, passing_result

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Literal

    from seatrial.documents.plan import Plan
    from seatrial.probe.pinned import PinnedSpec
    from seatrial.specs.load import LoadedSpec

CHEAP, DEAR = "ml.g5.2xlarge", "ml.g5.12xlarge"
LEVEL = 16
NOTE = "local-cpu-random-llama (not the model named)"


@dataclass(frozen=True)
class Locked:
    """An endpoint with its plan, as `seatrial plan --write` leaves it."""

    loaded: LoadedSpec
    plan: Plan
    environments: Path

    def pinned(self, *roles: str) -> tuple[PinnedSpec, ...]:
        """Pin the deployments that are probed without any option, or some of them."""
        probed = [each for each in deployments_to_probe(self.plan, None, None) if not roles or each.role in roles]
        return pin(self.loaded, probed, self.loaded.path.parent / "probe", self.environments)


def locked_as(folder: Path, **fields: object) -> Locked:
    environments = folder / "environments"
    environments.mkdir(exist_ok=True)
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n", encoding="utf-8")
    spec = {
        "name": "chat",
        "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
        "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": LEVEL},
        "serving": {"instance_types": [CHEAP, DEAR]},
        **fields,
    }
    path = folder / "chat.yaml"
    path.write_text(yaml.safe_dump(spec), encoding="utf-8")
    loaded = load_spec(path, "dev", environments=environments)
    plan = make_plan(loaded, accept_slo_miss=True)
    write_lock(plan, path)
    return Locked(loaded, plan, environments)


def bound_in_doubt(folder: Path) -> float:
    """Return a bound of TPOT p95 that the cheap deployment is predicted to miss by 5 %."""
    alone = locked_as(folder, serving={"instance_types": [CHEAP]}).plan
    return next(point.tpot_p95_ms for point in alone.curve if point.concurrency == LEVEL) / 1.05


@pytest.fixture
def locked(tmp_path: Path) -> Locked:
    found = locked_as(tmp_path, slo={"tpot_ms": {"p95": bound_in_doubt(tmp_path)}})
    assert (found.plan.instance_type.value, found.plan.probe is not None) == (DEAR, True)
    return found


@pytest.fixture
def certain(tmp_path: Path) -> Locked:
    return locked_as(tmp_path, serving={"instance_types": [CHEAP]})


def result_of(
    pinned: PinnedSpec,
    status: Literal["pass", "fail", "inconclusive"] = "pass",
    *,
    tok_s: float = 300.0,
    note: str = "",
) -> TrialResult:
    """Return the result of a deployment's trial: one level, with a verdict."""
    target = TrialTarget(endpoint_name="e", inference_component="c", region="us-east-1")
    expected = Expected(endpoint_config_name="config-2", model_name="model-2")
    request = trial_request(pinned.loaded, pinned.plan, pinned.deployment.serving, target, expected)
    return replace(
        passing_result(),
        request=request,
        levels=(level(pinned.probed.concurrency_per_copy, tok_s),),
        verdict=Verdict(status=status, because="judged by hand", checks=()),
        engine_note=note,
    )
