from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import seatrial_laptop.state
from seatrial.deployment.load import find_deployments, load_deployments
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.environment import EMBEDDED_ACCOUNT
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """\
name: {name}
model: {{hub_id: meta-llama/Llama-2-7b-chat-hf}}
workload: {{input_tokens: 256, output_tokens: 128, concurrency: 8}}
serving: {{instance_types: [ml.g5.2xlarge]}}
"""


@pytest.fixture
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    monkeypatch.chdir(tmp_path)
    endpoints, environments = tmp_path / "endpoints", tmp_path / "environments"
    for folder in (endpoints, environments):
        folder.mkdir()
    (environments / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    return endpoints.relative_to(tmp_path), environments.relative_to(tmp_path)


def write(folders: tuple[Path, Path], file: str, name: str, *locked: str) -> None:
    """Write a spec, and lock it for some environments; for dev when none is named."""
    spec = folders[0] / file
    spec.write_text(SPEC.format(name=name))
    for environment in locked or ("dev",):
        write_lock(make_plan(load_spec(spec, environment, environments=folders[1])), spec)


@pytest.fixture
def three(folders: tuple[Path, Path]) -> tuple[Path, Path]:
    """Add the environments prod and local to dev; local is the embedded AWS."""
    (folders[1] / "prod.yaml").write_text("name: prod\nregion: eu-west-1\n")
    (folders[1] / "local.yaml").write_text(f'name: local\naccount: "{EMBEDDED_ACCOUNT}"\nregion: us-east-1\n')
    return folders


def test_every_endpoint_of_the_folder_is_loaded(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", "talk")
    assert [deployment.stack_name for deployment in load_deployments(*folders, "dev").deployments] == [
        "seatrial-dev-chat",
        "seatrial-dev-talk",
    ]


@pytest.mark.parametrize("second", ["chat", "Chat"])
def test_one_name_in_two_specs_names_both_files(second: str, folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", second)
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "dev")
    assert str(caught.value) == (
        f"endpoints/b.yaml: name: SEA108: endpoints/a.yaml has the name chat, this one {second}\n"
        "  hint: rename one: names must differ in more than upper and lower case"
    )


def relock(folders: tuple[Path, Path], file: str, generation: int) -> None:
    spec = folders[0] / file
    plan = make_plan(load_spec(spec, "dev", environments=folders[1]))
    write_lock(plan.model_copy(update={"generation": generation}), spec)


def test_a_later_generation_has_a_name_of_its_own_in_the_same_stack(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    relock(folders, "a.yaml", 12)
    (deployment,) = load_deployments(*folders, "dev").deployments
    assert (deployment.endpoint_name, deployment.stack_name) == ("dev-chat-12", "seatrial-dev-chat")


def test_a_generation_is_not_deployed_under_the_name_of_another_spec(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat-2")
    write(folders, "b.yaml", "chat")
    relock(folders, "b.yaml", 2)
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "dev")
    assert str(caught.value) == (
        "endpoints/b.yaml: name: SEA108: endpoints/a.yaml is deployed as dev-chat-2, like this one\n  hint: rename one"
    )


def test_a_generation_that_makes_the_components_name_too_long_is_refused(folders: tuple[Path, Path]) -> None:
    (folders[1] / "dev.yaml").rename(folders[1] / "development12345.yaml")
    (folders[1] / "development12345.yaml").write_text("name: development12345\nregion: us-east-1\n")
    name = "c" * 40
    write(folders, "a.yaml", name, "development12345")
    (first,) = load_deployments(*folders, "development12345").deployments
    assert len(f"{first.endpoint_name}-model") == 63
    spec = folders[0] / "a.yaml"
    write_lock(first.plan.model_copy(update={"generation": 2}), spec)
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "development12345")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field) == ("SEA107", "name")
    assert "has 2 characters more than 63" in problem.message


def test_what_is_wrong_with_the_environment_is_told_once(folders: tuple[Path, Path]) -> None:
    write(folders, "a.yaml", "chat")
    write(folders, "b.yaml", "talk")
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "stage")
    assert [str(problem) for problem in caught.value.problems] == [
        "environments/stage.yaml: SEA109: there is no environment stage\n"
        "  hint: known environments: dev (in environments)"
    ]


EMBEDDED = "local (embedded AWS) is skipped; select it with -c environment=local"


class TestEveryEnvironment:
    def test_what_is_locked_is_found_and_what_is_not_is_told(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod", "local")
        write(three, "b.yaml", "talk", "local")
        write(three, "c.yaml", "sum", "dev")
        found = find_deployments(*three)
        assert [each.stack_name for each in found.deployments] == [
            "seatrial-dev-chat",
            "seatrial-dev-sum",
            "seatrial-prod-chat",
        ]
        assert found.left_out == (
            "dev: skipped without a lock: b (lock with `seatrial plan endpoints/b.yaml --environment dev --write`)",
            EMBEDDED,
            "prod: skipped without a lock: b, c (lock with `seatrial plan endpoints/b.yaml --environment prod "
            "--write`)",
        )

    def test_one_endpoint_alone(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod")
        write(three, "b.yaml", "talk", "dev")
        found = find_deployments(*three, "a")
        assert [each.stack_name for each in found.deployments] == ["seatrial-dev-chat", "seatrial-prod-chat"]
        assert found.left_out == (EMBEDDED,)

    def test_every_problem_of_every_environment_is_told(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod")
        write(three, "b.yaml", "talk", "dev", "prod")
        (three[0] / "a.yaml").write_text(SPEC.format(name="chat").replace("concurrency: 8", "concurrency: 9"))
        (three[0] / "b.lock.json").write_text("{")
        (three[1] / "stage.yaml").write_text("name: stage\n")
        with pytest.raises(SpecError) as caught:
            find_deployments(*three)
        assert [(each.where, each.field, each.rule) for each in caught.value.problems] == [
            ("environments/stage.yaml", "region", "SEA106"),
            ("endpoints/a.lock.json", "dev", "SEA402"),
            ("endpoints/b.lock.json", "", "SEA403"),
            ("endpoints/a.lock.json", "prod", "SEA402"),
        ]

    def test_nothing_but_the_embedded_aws_is_locked(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "local")
        with pytest.raises(SpecError) as caught:
            find_deployments(*three)
        (problem,) = caught.value.problems
        assert (problem.rule, problem.message) == ("SEA404", "no endpoint has a lock in any environment")
        assert EMBEDDED in problem.hint

    def test_a_named_environment_must_have_every_endpoint(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod")
        write(three, "b.yaml", "talk", "dev")
        there = load_deployments(*three, "prod")
        assert [each.stack_name for each in there.deployments] == ["seatrial-prod-chat"]
        ((stack, (problem,)),) = [(each.stack_name, each.problems) for each in there.broken]
        assert (stack, problem.rule, problem.message) == ("seatrial-prod-talk", "SEA401", "there is no plan for prod")

    def test_the_account_of_the_embedded_aws_is_one(self) -> None:
        assert seatrial_laptop.state.ACCOUNT == EMBEDDED_ACCOUNT


class TestRequiredPromotion:
    """Where a promotion is required, what is deployed stays until the new plan was tried in the environment before."""

    @pytest.fixture(autouse=True)
    def required(self, three: tuple[Path, Path]) -> None:
        place = three[1] / "prod.yaml"
        place.write_text(place.read_text() + "promotion: {source: dev, required: true}\n")

    @pytest.mark.parametrize("locked", [("dev",), ("dev", "prod")])
    def test_what_awaits_it_is_left_out_and_told(self, three: tuple[Path, Path], locked: tuple[str, ...]) -> None:
        write(three, "a.yaml", "chat", *locked)
        told = (
            "prod: left as deployed until promoted: a (promote with `seatrial promote endpoints/a.yaml --from dev "
            "--to prod --write`)"
        )
        found = find_deployments(*three)
        assert [each.stack_name for each in found.deployments] == ["seatrial-dev-chat"]
        assert found.left_out == (EMBEDDED, told)
        alone = load_deployments(*three, "prod")
        assert (alone.deployments, alone.left_out) == ((), (told,))
        assert [each.name for each in alone.awaiting] == ["prod"]

    def test_by_name_it_is_refused(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod")
        with pytest.raises(SpecError) as caught:
            load_deployments(*three, "prod", "a")
        (problem,) = caught.value.problems
        assert (problem.rule, problem.field) == ("SEA478", "prod.promoted")

    def test_another_mistake_is_told_all_the_same(self, three: tuple[Path, Path]) -> None:
        write(three, "a.yaml", "chat", "dev", "prod")
        place = three[1] / "prod.yaml"
        place.write_text(place.read_text() + "guard_rails: {instance_types: [ml.g6.xlarge]}\n")
        (broken,) = find_deployments(*three).broken
        assert {"SEA111"} <= {problem.rule for problem in broken.problems}


def test_no_endpoint_takes_the_stack_of_what_its_environment_shares(folders: tuple[Path, Path]) -> None:
    for name in ("trials", "products"):
        write(folders, f"{name}.yaml", name)
    with pytest.raises(SpecError) as caught:
        load_deployments(*folders, "dev")
    assert [(each.rule, each.message) for each in caught.value.problems] == [
        ("SEA522", "seatrial-dev-products is the stack of the environment's products"),
        ("SEA522", "seatrial-dev-trials is the stack of the environment's trial service"),
    ]
