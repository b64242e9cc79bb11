"""Several models on one endpoint: read with it, packed, refused where they can't share it, and never deployed alone."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from seatrial.deployment.guests import packing_lines
from seatrial.deployment.load import load_deployment, load_deployments, runs_others, whole_problems
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Folders = tuple["Path", "Path"]
BASE = """\
name: {name}
model: {{hub_id: meta-llama/Llama-2-7b-chat-hf}}
workload: {{input_tokens: 256, output_tokens: 128, concurrency: 4}}
serving: {{instance_types: [{type}], overrides: {{tensor_parallel_degree: 1}}}}
"""
HOST = "hosting: {more_models: [summarize]}\n"
GUEST = 'trial: {mode: "off"}\n'


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folders:
    monkeypatch.chdir(tmp_path)
    endpoints, environments = tmp_path / "endpoints", tmp_path / "environments"
    for folder in (endpoints, environments):
        folder.mkdir()
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    return endpoints.relative_to(tmp_path), environments.relative_to(tmp_path)


def write(folders: Folders, name: str, more: str, instance_type: str = "ml.g5.12xlarge") -> None:
    spec = folders[0] / f"{name}.yaml"
    spec.write_text(BASE.format(name=name, type=instance_type) + more)
    write_lock(make_plan(load_spec(spec, "dev", environments=folders[1])), spec)


def refused(load: Callable[[], object]) -> list[tuple[str, str]]:
    with pytest.raises(SpecError) as caught:
        load()
    return [(each.rule, each.field) for each in caught.value.problems]


def test_a_hosted_model_is_read_with_its_host_and_has_no_stack(folders: Folders) -> None:
    write(folders, "chat", HOST)
    write(folders, "summarize", GUEST)
    (deployment,) = load_deployments(*folders, "dev").deployments
    assert deployment.endpoint.name == "chat"
    (guest,) = deployment.guests
    assert deployment.component_of(guest) == "dev-chat-summarize"
    assert deployment.packing is not None
    assert packing_lines(deployment.packing)[0] == "planned copies on 1 instance: 1 with 1 chat, 1 summarize"
    assert refused(lambda: load_deployment(folders[0] / "summarize.yaml", folders[1], "dev")) == [("SEA128", "name")]
    assert refused(lambda: load_deployments(*folders, "dev", "summarize")) == [("SEA128", "name")]


def test_everything_that_a_hosted_model_cant_have_is_told_at_once(folders: Folders) -> None:
    write(folders, "chat", HOST)
    write(folders, "summarize", "hosting: {more_models: [translate], data_cache: true}\n", "ml.g5.2xlarge")
    found = refused(lambda: load_deployment(folders[0] / "chat.yaml", folders[1], "dev"))
    assert ("SEA128", "hosting.more_models") in found
    assert ("SEA128", "trial.mode") in found or ("SEA128", "trial") in found
    assert ("SEA214", "serving.instance_types") in found


@pytest.mark.parametrize(("own", "refusals"), [("a", []), ("b", [("SEA130", "hosting.shadow.spec")])])
def test_an_endpoint_has_one_capacity_reservation(folders: Folders, own: str, refusals: list[tuple[str, str]]) -> None:
    arn = "capacity_reservation_arn: 'arn:aws:sagemaker:us-east-1:111122223333:training-plan/{}'"
    for name, reservation, more in (("next", "a", ""), ("chat", own, ", shadow: {spec: next}")):
        hosting = f"hosting: {{kind: single_model, {arn.format(reservation)}{more}}}\n"
        write(folders, name, GUEST + hosting, "ml.p5.4xlarge")
    load = partial(load_deployment, folders[0] / "chat.yaml", folders[1], "dev")
    if refusals:
        assert refused(load) == refusals
    else:
        assert load().variants


def test_a_missing_and_an_unlocked_model_are_told(folders: Folders) -> None:
    write(folders, "chat", "hosting: {more_models: [summarize, translate]}\n")
    spec = folders[0] / "summarize.yaml"
    spec.write_text(BASE.format(name="summarize", type="ml.g5.12xlarge") + GUEST)
    found = refused(lambda: load_deployments(*folders, "dev"))
    assert sorted(rule for rule, _ in found) == ["SEA128", "SEA401"]


def test_a_model_has_one_host(folders: Folders) -> None:
    for name in ("chat", "other"):
        write(folders, name, HOST)
    write(folders, "summarize", GUEST)
    assert ("SEA128", "hosting.more_models") in refused(lambda: load_deployments(*folders, "dev"))


def test_models_that_host_each_other_are_told_and_none_is_left_out(folders: Folders) -> None:
    write(folders, "chat", HOST)
    write(folders, "summarize", "hosting: {more_models: [chat]}\n")
    assert refused(lambda: load_deployments(*folders, "dev")) == [("SEA128", "hosting.more_models")] * 2


def railed(folders: Folders, rails: str) -> None:
    (folders[1] / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\nguard_rails: {{{rails}}}\n")


@pytest.mark.parametrize(
    ("rails", "told"),
    [
        ("max_copies: 3", "4 copies of all models and variants exceed 3"),
        ("usd_per_hour: 10", "$14.18 per hour at list prices for 2 x ml.g5.12xlarge exceeds $10.00"),
    ],
)
def test_rails_hold_for_everything_on_an_endpoint(folders: Folders, rails: str, told: str) -> None:
    railed(folders, rails)
    two = "scaling: {max_copies: 2}\n"
    write(folders, "chat", HOST + two)
    write(folders, "summarize", GUEST + two)
    with pytest.raises(SpecError) as caught:
        load_deployment(folders[0] / "chat.yaml", folders[1], "dev")
    (problem,) = caught.value.problems
    assert (problem.rule, told in problem.message) == ("SEA111", True), problem.message


JOB = "optimization: [{awq: {job: {max_hours: 2}}}]\n"


def test_the_jobs_of_everything_on_an_endpoint_count_together(folders: Folders) -> None:
    railed(folders, "job_usd: 28.3")  # two hours of ml.g5.12xlarge each
    shape = "architecture: meta-llama/Llama-2-7b-chat-hf, licence: llama2"
    in_s3 = f"environments: {{dev: {{model: {{hub_id: null, s3_uri: 's3://b00/%s/', {shape}}}}}}}\n{JOB}"
    write(folders, "chat", HOST + in_s3 % "chat")
    write(folders, "summarize", GUEST + in_s3 % "other")
    with pytest.raises(SpecError) as caught:
        load_deployment(folders[0] / "chat.yaml", folders[1], "dev")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("SEA111", "optimization[0].awq.job")
    assert "$28.36 at list prices for 2 x 2 h of ml.g5.12xlarge exceeds $28.30" in problem.message
    railed(folders, "job_usd: 28.4")
    assert len(load_deployment(folders[0] / "chat.yaml", folders[1], "dev").guests) == 1


def test_a_variant_of_another_spec_counts_with_its_own_instances(folders: Folders) -> None:
    railed(folders, "usd_per_hour: 8")
    single = 'trial: {mode: "off"}\nhosting: {kind: single_model'
    write(folders, "other", f"{single}}}\n", "ml.g6e.2xlarge")
    write(folders, "chat", f"{single}, variants: [{{name: a}}, {{name: b, spec: other}}]}}\n", "ml.g5.2xlarge")
    assert refused(lambda: load_deployment(folders[0] / "chat.yaml", folders[1], "dev")) == [
        ("SEA111", "hosting.variants[1]")
    ]
    railed(folders, "usd_per_hour: 9")
    write(folders, "other", f"{single}}}\n", "ml.g6e.2xlarge")
    write(folders, "chat", f"{single}, variants: [{{name: a}}, {{name: b, spec: other}}]}}\n", "ml.g5.2xlarge")
    assert len(load_deployment(folders[0] / "chat.yaml", folders[1], "dev").variants) == 1


def test_a_plan_is_held_against_the_rails_with_its_variants_once_they_are_locked(folders: Folders) -> None:
    railed(folders, "usd_per_hour: 8")
    single = 'trial: {mode: "off"}\nhosting: {kind: single_model'
    write(folders, "chat", f"{single}, variants: [{{name: a}}, {{name: b, spec: other}}]}}\n", "ml.g5.2xlarge")
    chat = load_spec(folders[0] / "chat.yaml", "dev", environments=folders[1])
    plan = make_plan(chat)
    assert runs_others(chat)
    assert refused(lambda: whole_problems(chat, plan)) == [("SEA130", "hosting.variants[1].spec")]
    write(folders, "other", f"{single}}}\n", "ml.g6e.2xlarge")
    assert [(each.rule, each.field) for each in whole_problems(chat, plan)] == [("SEA111", "hosting.variants[1]")]
    other = load_spec(folders[0] / "other.yaml", "dev", environments=folders[1])
    assert (runs_others(other), whole_problems(other, make_plan(other))) == (False, ())
