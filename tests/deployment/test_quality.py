"""`slo.quality` in the request of a trial."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.trial import trial_request
from seatrial.engines.render import render_plan
from seatrial.locks.locked_plan import read_locked_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError
from seatrial_load.documents.request import Expected, TrialTarget
from tests.probe.conftest import CHEAP, Locked, locked_as

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_load.documents.request import QualityFloor

SERVING = {"instance_types": [CHEAP]}


def floor_of(locked: Locked) -> QualityFloor | None:
    target = TrialTarget(endpoint_name="e", inference_component="c", region="us-east-1")
    expected = Expected(endpoint_config_name="config-2", model_name="model-2")
    return trial_request(locked.loaded, locked.plan, render_plan(locked.loaded, locked.plan), target, expected).quality


def with_set(folder: Path, lines: list[dict[str, str]], **bounds: float) -> Locked:
    (folder / "eval.jsonl").write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    return locked_as(folder, serving=SERVING, slo={"quality": {"evaluation_set": "eval.jsonl", **bounds}})


def test_the_set_travels_with_the_request(tmp_path: Path) -> None:
    found = floor_of(with_set(tmp_path, [{"prompt": "a", "reference": "b"}], exact_match=0.5, perplexity=6))
    assert found is not None
    assert [(each.metric, each.bound, each.sense) for each in found.objectives] == [
        ("exact_match", 0.5, "at_least"),
        ("perplexity", 6.0, "at_most"),
    ]
    assert found.prompts[0].reference == "b"


def test_a_set_without_a_bound_is_not_asked_by_the_trial(tmp_path: Path) -> None:
    assert floor_of(with_set(tmp_path, [{"prompt": "a"}])) is None


def test_a_lock_stays_fresh_whatever_quality_is_asked(tmp_path: Path) -> None:
    plain = locked_as(tmp_path, serving=SERVING)
    bound = with_set(tmp_path, [{"prompt": "a"}], perplexity=6)
    assert bound.plan == plain.plan
    assert read_locked_plan(bound.loaded) == bound.plan


@pytest.mark.parametrize(
    ("lines", "bounds", "field", "rule"),
    [
        ([{"prompt": "a"}], {"exact_match": 0.5}, "slo.quality.exact_match", "SEA533"),
        ([{"prompt": f"{n}"} for n in range(201)], {"perplexity": 6.0}, "slo.quality", "SEA533"),
        ([{"prompt": "a" * 50_000}], {"perplexity": 6.0}, "slo.quality", "SEA533"),
        ([{"promt": "a"}], {"perplexity": 6.0}, "promt", "SEA527"),
        (
            [{"prompt": "a"}, {"prompt": f"AWS_SECRET_ACCESS_KEY={'Ab1/' * 10}"}],
            {"perplexity": 6.0},
            "prompt 2",
            "SEA113",
        ),
        ([{"prompt": "{{resolve:ssm:/prod/key}}"}], {"perplexity": 6.0}, "prompt 1", "SEA137"),
    ],
)
def test_what_no_trial_can_ask_is_refused(
    tmp_path: Path, lines: list[dict[str, str]], bounds: dict[str, float], field: str, rule: str
) -> None:
    locked = with_set(tmp_path, lines, **bounds)
    with pytest.raises(SpecError) as refused:
        floor_of(locked)
    assert (field, rule) in [(problem.field, problem.rule) for problem in refused.value.problems]


def test_a_missing_set_is_told_by_the_spec(tmp_path: Path) -> None:
    locked = with_set(tmp_path, [{"prompt": "a"}])
    (tmp_path / "eval.jsonl").unlink()
    with pytest.raises(SpecError, match="SEA101"):
        load_spec(locked.loaded.path, "dev", environments=locked.environments)
