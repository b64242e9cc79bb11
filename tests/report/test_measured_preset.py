"""A trial's result as a preset of the team."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.locked_plan import read_locked_plan
from seatrial.report.measured_preset import measured_preset
from seatrial.specs.load import LoadedSpec, load_spec
from seatrial_base.errors import SpecError
from tests.report.samples import LOCAL_ENGINE

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.documents.result import TrialResult


@pytest.fixture(scope="module")
def loaded(request: pytest.FixtureRequest) -> LoadedSpec:
    root: Path = request.config.rootpath
    return load_spec(root / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=root / "environments")


@pytest.fixture
def tried(real: TrialResult, loaded: LoadedSpec) -> TrialResult:
    digest = read_locked_plan(loaded, stale=True).digest
    return replace(real, request=replace(real.request, plan_digest=digest))


def test_it_says_what_was_measured_at_the_knee(tried: TrialResult, loaded: LoadedSpec) -> None:
    plan = read_locked_plan(loaded, stale=True)
    preset = measured_preset(tried, loaded, where="result.json")
    knee = tried.knee

    assert preset.name == f"llama-2-7b-chat.llama-2-7b-chat-hf.{plan.instance_type.value.removeprefix('ml.')}.none"
    assert preset.model == "meta-llama/Llama-2-7b-chat-hf"
    assert (preset.recipe, preset.provenance, preset.endpoint) == ("none", "measured here", loaded.endpoint.name)
    assert preset.verdict == tried.verdict.status
    level = next(level for level in tried.levels if level.concurrency * tried.request.copy_count == preset.concurrency)
    assert preset.output_tok_s == pytest.approx(level.output_tok_s, rel=1e-3)
    limit = knee.concurrency if knee and knee.concurrency else tried.request.gate_concurrency
    assert level.concurrency <= limit
    price = tried.request.usd_per_hour_per_copy
    assert price is not None
    cost = price * tried.request.copy_count / (level.output_tok_s or 0) / 3600 * 1e6
    assert preset.usd_per_million_output_tokens == pytest.approx(cost, rel=1e-3)
    assert "secret" not in preset.model_dump_json()


def test_it_refuses_what_says_nothing_of_the_locked_plan(
    real: TrialResult, tried: TrialResult, loaded: LoadedSpec
) -> None:
    for result, said in (
        (real, "the trial tried the plan"),
        (replace(tried, engine_note=LOCAL_ENGINE), "a local or simulated engine"),
        (replace(tried, levels=()), "no level was measured"),
    ):
        with pytest.raises(SpecError, match=said) as raised:
            measured_preset(result, loaded, where="result.json")
        assert [problem.rule for problem in raised.value.problems] == ["SEA252"]
