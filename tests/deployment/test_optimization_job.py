from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from seatrial.deployment.optimization_job import job_of
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from seatrial.deployment.optimization_job import OptimizationJobRequest
    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec

ROOT = Path(__file__).parents[2]
IN_S3 = {"s3_uri": "s3://weights/base/", "architecture": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True}
HUB = {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True}


def loaded(folder: Path, recipe: list[object], **model: object) -> LoadedSpec:
    spec = {
        "name": "chat",
        "model": model or IN_S3,
        "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 4},
        "serving": {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512}},
        "scaling": {"min_copies": 1, "max_copies": 1},
        "optimization": recipe,
    }
    file = folder / "chat.yaml"
    file.write_text(yaml.safe_dump(spec))
    return load_spec(file, "local", environments=ROOT / "environments")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> tuple[LoadedSpec, Plan]:
    asked = loaded(tmp_path_factory.mktemp("base"), [{"awq": {"job": True}}])
    return asked, make_plan(asked, accept_slo_miss=True)


def made(asked: LoadedSpec, plan: Plan) -> OptimizationJobRequest:
    request = job_of(asked, plan)
    assert request is not None
    return request


def test_a_quantization_is_asked_for_in_the_words_of_the_api(base: tuple[LoadedSpec, Plan]) -> None:
    request, image = made(*base), base[1].image.value.uri
    settings = {"Image": image, "OverrideEnvironment": {"OPTION_QUANTIZE": "awq"}}
    assert request.configs == ({"ModelQuantizationConfig": settings},)
    assert (request.source_s3_uri, request.instance_type) == ("s3://weights/base/", "ml.g5.2xlarge")
    assert request.name == f"local-{request.digest}"
    assert not request.needs_image
    assert '"MaxRuntimeInSeconds":43200' in request.to_json()


def test_the_digest_changes_with_the_artifacts_and_with_nothing_else(base: tuple[LoadedSpec, Plan]) -> None:
    request = made(*base)
    same = replace(request, max_hours=1, accept_eula=not request.accept_eula, environment="other", image="other")
    assert same.digest == request.digest
    changed = (
        replace(request, source_s3_uri="s3://weights/other/"),
        replace(request, instance_type="ml.g5.12xlarge"),
        replace(request, configs=({"ModelShardingConfig": {}},)),
    )
    assert len({request.digest, *(each.digest for each in changed)}) == 4


@pytest.mark.parametrize("recipe", [[], ["fp8"], ["prefix_cache"]])
def test_other_recipes_have_no_job(base: tuple[LoadedSpec, Plan], tmp_path: Path, recipe: list[object]) -> None:
    assert job_of(loaded(tmp_path, recipe), base[1]) is None


def test_a_job_reads_no_hub(base: tuple[LoadedSpec, Plan], tmp_path: Path) -> None:
    with pytest.raises(SpecError) as raised:
        job_of(loaded(tmp_path, [{"awq": {"job": True}}], **HUB), base[1])
    (problem,) = raised.value.problems
    assert (problem.rule, problem.field) == ("SEA456", "optimization[0].awq.job")
    assert "seatrial stage" in problem.hint


def test_artifacts_are_made_for_the_instance_types_of_the_api_alone(
    base: tuple[LoadedSpec, Plan], tmp_path: Path
) -> None:
    asked = loaded(tmp_path, [{"awq": {"job": {"instance_type": "ml.g5.12xlarge", "max_hours": 2}}}])
    assert made(asked, base[1]).instance_type == "ml.g5.12xlarge"
    wrong = loaded(tmp_path, [{"awq": {"job": {"instance_type": "ml.m5.xlarge"}}}])
    with pytest.raises(SpecError) as raised:
        job_of(wrong, base[1])
    assert [problem.rule for problem in raised.value.problems] == ["SEA457"]
