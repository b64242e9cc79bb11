"""An endpoint whose plan was deployed to staging and tried there, and prod, which it is promoted to."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.deployment.trial import trial_request
from seatrial.engines.render import render_plan
from seatrial.locks.lock_file import write_lock
from seatrial.operations.promotion import PromotedLock, TrialEvidence, promote_plan
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError
from seatrial_load.documents.request import Expected, TrialTarget
from seatrial_load.documents.seal import ResultSeal
from tests.constructs.conftest import EvidenceKey, level, passing_result

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from seatrial_load.documents.result import TrialResult

NOW = datetime(2026, 11, 22, 1, 1, 1, tzinfo=UTC)  # a day after the result ended
URI = "s3://results/passed/staging-chat/abc/config-2/model-2.json"
SPEC: dict[str, object] = {
    "name": "chat",
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
    "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
    "slo": {"ttft_ms": {"p95": 2000}},
    "trial": {"confidence": 0},  # the levels of the result have no intervals
    "serving": {"instance_types": ["ml.g5.2xlarge"]},
    "environments": {"prod": {"workload": {"concurrency": 40}, "scaling": {"max_copies": 4}}},
}
KEY = EvidenceKey()
REQUIRED = {"source": "staging", "required": True, "public_keys": [KEY.public]}
PROD: dict[str, object] = {"name": "prod", "region": "us-east-1", "promotion": REQUIRED}


@dataclass
class Staged:
    """What staging runs, and prod's files."""

    folder: Path

    def load(self, environment: str) -> LoadedSpec:
        return load_spec(self.folder / "chat.yaml", environment, environments=self.folder / "environments")

    def write(self, *, prod: dict[str, object] | None = None, **fields: object) -> None:
        places = {"staging": {"name": "staging", "region": "us-east-1"}, "prod": {**PROD, **(prod or {})}}
        for name, place in places.items():
            (self.folder / "environments" / f"{name}.yaml").write_text(yaml.safe_dump(place), encoding="utf-8")
        (self.folder / "chat.yaml").write_text(yaml.safe_dump({**SPEC, **fields}), encoding="utf-8")

    def lock(self) -> Plan:
        source = self.load("staging")
        plan = make_plan(source)
        write_lock(plan, source.path)
        return plan

    def result(self, plan: Plan, **changes: object) -> TrialResult:
        source = self.load("staging")
        target = TrialTarget(endpoint_name="staging-chat", inference_component="c", region="us-east-1")
        expected = Expected(endpoint_config_name="config-2", model_name="model-2")
        request = trial_request(source, plan, render_plan(source, plan), target, expected)
        measured = replace(passing_result(), request=request, levels=(level(8, 250.0), level(16, 410.5)))
        return replace(measured, **changes)  # type: ignore[arg-type]  # the fields of the dataclass

    def promote(self, evidence: TrialEvidence, *, accept_simulated: bool = False) -> PromotedLock:
        source, target = self.load("staging"), self.load("prod")
        return promote_plan(source, target, evidence, now=NOW, accept_simulated=accept_simulated)

    def refused(self, evidence: TrialEvidence) -> dict[str, str]:
        """Return the messages of the problems by their rules."""
        with pytest.raises(SpecError) as caught:
            self.promote(evidence)
        return {each.rule: each.message for each in caught.value.problems}


def evidence_of(result: TrialResult, key: EvidenceKey = KEY) -> TrialEvidence:
    text = key.seal(result.to_json(), "request-1")
    return TrialEvidence(
        result=replace(result, seal=ResultSeal(**json.loads(text)["seal"])),
        text=text,
        result_uri=URI,
        report_uri=URI.replace(".json", ".md"),
        request_id="request-1",
        deployed_digest=result.request.plan_digest,
    )


@pytest.fixture
def staged(tmp_path: Path) -> Staged:
    (tmp_path / "environments").mkdir()
    staged = Staged(tmp_path)
    staged.write()
    return staged
