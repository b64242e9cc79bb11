"""What a product's file may say, and what is loaded of it: every problem of every size at once."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from seatrial.deployment.product import load_product, product_deployments
from seatrial.deployment.published import (
    made_from,
    publication_state,
    published_versions,
    sealed,
    source_path,
    source_text,
    template_path,
)
from seatrial_base.errors import SpecError
from tests.sample_product import ENDPOINT, lock_sizes, write_product

ROLE = "arn:aws:iam::123456789012:role/team"

IN_S3 = {"s3_uri": "s3://weights/llama/", "architecture": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True}


def problems(folder: Path, lab: dict[str, object] | None = None, **changes: object) -> list[tuple[str, str]]:
    try:
        load_product(write_product(folder, lab=lab, **changes), folder / "environments")
    except SpecError as error:
        return [(problem.rule, problem.field) for problem in error.problems]
    return []


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"name": "other"}, [("SEA108", "name")]),
        ({"version": "1.0"}, [("SEA107", "version")]),
        ({"deprecated": ["1.0.0"]}, [("SEA492", "deprecated")]),
        ({"environments": []}, [("SEA107", "environments")]),
        ({"environments": ["nowhere"]}, [("SEA109", "environments[0]")]),
        ({"principals": [ROLE, "*"]}, [("SEA107", "principals[1]")]),
        ({"principals": [ROLE, f"{ROLE}-*"]}, [("SEA107", "principals[1]")]),
        ({"parameters": {"teams": ["a-b"]}}, [("SEA107", "parameters.teams[0]")]),
        ({"parameters": {"cost_centers": ["4711", " "]}}, [("SEA107", "parameters.cost_centers[1]")]),
        ({"endpoint": {**ENDPOINT, "tags": {"seatrial:team": "a"}}}, [("SEA107", "endpoint.tags.seatrial:team")]),
        ({"sizes": {"small": {"tags": {"Seatrial:x": "a"}}}}, [("SEA107", "sizes.small.tags.Seatrial:x")]),
        ({"endpoint": {**ENDPOINT, "name": "chat"}}, [("SEA490", "endpoint.name")]),
        ({"endpoint": {**ENDPOINT, "serving": {"code": "handler"}}}, [("SEA493", "endpoint.serving.code")]),
        (
            {"endpoint": {**ENDPOINT, "model": IN_S3, "optimization": [{"awq": {"job": True}}]}},
            [("SEA485", "endpoint.optimization[0].awq.job")],
        ),
        ({"sizes": {}}, [("SEA107", "sizes")]),
        ({"sizes": {"small": {"workload": {"concurrency": 0}}}}, [("SEA107", "sizes.small.workload.concurrency")]),
        ({"sizes": {"small": {"wurkload": {}}}}, [("SEA104", "sizes.small.wurkload")]),
        ({"surprise": 1}, [("SEA104", "surprise")]),
    ],
)
def test_a_mistake_is_told_where_it_was_written(
    tmp_path: Path, changes: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    assert problems(tmp_path, **changes) == expected


def test_an_environment_that_offers_nothing_is_told(tmp_path: Path) -> None:
    assert problems(tmp_path, {"vending": False}) == [("SEA491", "environments[0]")]


def test_products_are_not_promoted(tmp_path: Path) -> None:
    write_product(tmp_path)
    (tmp_path / "environments" / "dev.yaml").write_text("name: dev\nregion: us-east-1\n")
    promotion = {"source": "dev", "required": True}
    assert problems(tmp_path, {"promotion": promotion}) == [("SEA499", "environments[0]")]


def test_a_guard_rail_holds_for_every_size(tmp_path: Path) -> None:
    sizes = {name: {"scaling": {"max_copies": most}} for name, most in (("small", 5), ("large", 4), ("huge", 9))}
    assert problems(tmp_path, sizes=sizes) == [
        ("SEA111", "sizes.small.scaling.max_copies"),
        ("SEA111", "sizes.huge.scaling.max_copies"),
    ]


def test_no_text_of_a_product_is_replaced_when_it_is_launched(tmp_path: Path) -> None:
    text = "{{resolve:secretsmanager:prod/db}}"
    endpoint = {**ENDPOINT, "serving": {"engine": "vllm", "overrides": {"extra": {"served_model_name": text}}}}
    found = problems(tmp_path, endpoint=endpoint, description=text)
    assert {("SEA137", "description"), ("SEA137", "endpoint.serving.overrides.extra.served_model_name")} <= set(found)


def test_an_image_that_nobody_allows_is_refused_in_a_product(tmp_path: Path) -> None:
    image = "666666666666.dkr.ecr.us-east-1.amazonaws.com/evil:1"
    endpoint = {**ENDPOINT, "serving": {"instance_types": ["ml.g5.2xlarge"], "image": image}}
    assert problems(tmp_path, endpoint=endpoint) == [("SEA111", "endpoint.serving.image")]


def test_what_all_sizes_share_is_told_once(tmp_path: Path) -> None:
    endpoint = {**ENDPOINT, "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": -1}}
    sizes: dict[str, object] = {"small": None, "large": None}
    assert problems(tmp_path, endpoint=endpoint, sizes=sizes) == [("SEA107", "endpoint.workload.concurrency")]


RAIL = {"max_copies": 4}
FIXED: dict[str, object] = {**ENDPOINT, "environments": {"lab": {"tags": {"team": "support"}}}}


@pytest.mark.parametrize(
    ("rails", "changes", "expected"),
    [
        ({"required_tags": ["team", "cost-center"]}, {}, []),
        ({"required_tags": ["stage", "team", "owner"]}, {}, [("SEA111", "tags.owner")]),
        ({"required_tags": ["cost-center"]}, {"parameters": {}}, [("SEA111", "tags.cost-center")]),
        ({"tag_values": {"team": ["search"]}}, {}, [("SEA111", "tags.team")]),
        ({"tag_values": {"team": ["search"]}}, {"parameters": {}}, [("SEA111", "tags.team")]),
        ({"tag_values": {"team": ["s*"], "cost-center": ["4*"]}}, {}, []),
        ({}, {"endpoint": {**ENDPOINT, "tags": {"team": "support"}}}, [("SEA593", "endpoint.tags.team")]),
        ({}, {"endpoint": FIXED}, [("SEA593", "endpoint.environments.lab.tags.team")]),
        ({}, {"endpoint": {**ENDPOINT, "tags": {"cost-center": "1"}}, "parameters": {}}, []),
    ],
)
def test_what_a_launch_chooses_counts_as_a_tag_and_nothing_replaces_it(
    tmp_path: Path, rails: dict[str, object], changes: dict[str, object], expected: list[tuple[str, str]]
) -> None:
    assert problems(tmp_path, lab={"guard_rails": RAIL | rails}, **changes) == expected


SEARCH, EVERYBODY = "arn:aws:iam::123456789012:role/team-search", "arn:aws:iam:::role/team-*"


@pytest.mark.parametrize(
    ("principals", "teams", "expected"),
    [
        ([], {}, [("SEA665", "principals")]),
        ([], {"search": [SEARCH]}, []),
        ([], {"sales": [SEARCH]}, [("SEA666", "team_principals.sales")]),
        ([SEARCH], {"search": [SEARCH]}, [("SEA667", "team_principals.search[0]")]),
        ([EVERYBODY], {"search": [SEARCH]}, [("SEA667", "team_principals.search[0]")]),
        ([SEARCH], {"search": [EVERYBODY]}, [("SEA667", "team_principals.search[0]")]),
        (["arn:aws:iam:::role/*-search"], {"search": [EVERYBODY]}, [("SEA667", "team_principals.search[0]")]),
        (["arn:aws:iam:::role/te?m"], {"search": ["arn:aws:iam:::role/team-*"]}, []),
        ([SEARCH.replace("1234", "4321")], {"search": [SEARCH]}, []),
        (["arn:aws:iam:::role/platform"], {"search": [SEARCH], "support": ["arn:aws:iam:::role/support"]}, []),
    ],
)
def test_a_principal_of_a_team_is_of_that_team_alone(
    tmp_path: Path, principals: list[str], teams: dict[str, list[str]], expected: list[tuple[str, str]]
) -> None:
    assert problems(tmp_path, principals=principals, team_principals=teams) == expected


def test_an_environment_overrides_what_a_size_sets(tmp_path: Path) -> None:
    endpoint = {**ENDPOINT, "environments": {"lab": {"workload": {"concurrency": 2}}}}
    loaded = load_product(write_product(tmp_path, endpoint=endpoint), tmp_path / "environments")
    sizes = {size: each.endpoint.workload.concurrency for size, each in loaded.sizes_in("lab").items()}
    assert sizes == {"small": 2, "large": 2}


def test_without_a_lock_the_hint_names_the_command_for_products(tmp_path: Path) -> None:
    file = write_product(tmp_path)
    loaded = load_product(file, tmp_path / "environments")
    with pytest.raises(SpecError) as caught:
        product_deployments(loaded, "lab")
    command = f"seatrial products plan {file.as_posix()} --environment lab --write"
    assert [problem.rule for problem in caught.value.problems] == ["SEA401", "SEA401"]
    assert all(command in problem.hint for problem in caught.value.problems)


def test_a_locked_size_is_a_deployment_without_files(tmp_path: Path) -> None:
    file = write_product(tmp_path)
    lock_sizes(file, tmp_path / "environments")
    deployments = product_deployments(load_product(file, tmp_path / "environments"), "lab")
    assert [each.endpoint_name for each in deployments.values()] == [
        "lab-TEAM-ENDPOINT-small",
        "lab-TEAM-ENDPOINT-large",
    ]
    assert [each.serving.files for each in deployments.values()] == [{}, {}]


def test_versions_are_sorted_as_numbers_and_the_current_one_must_be_there(tmp_path: Path) -> None:
    file = write_product(tmp_path, version="1.10.0", deprecated=["1.9.0", "1.2.0"])
    loaded = load_product(file, tmp_path / "environments")
    for version in ("1.9.0", "1.10.0", "1.2.0"):
        path = template_path(file, version, "lab")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(sealed({"Resources": {}}, "from")))
    assert [each.version for each in published_versions(loaded, "lab")] == ["1.2.0", "1.9.0", "1.10.0"]
    template_path(file, "1.10.0", "lab").unlink()
    with pytest.raises(SpecError, match=r"SEA494: version 1\.10\.0 is not published for lab"):
        published_versions(loaded, "lab")


@pytest.mark.parametrize("edit", ["{}", "[", '{"Resources": {"More": {}}}'])
def test_an_edited_template_is_refused(tmp_path: Path, edit: str) -> None:
    file = write_product(tmp_path)
    loaded = load_product(file, tmp_path / "environments")
    path = template_path(file, "1.0.0", "lab")
    path.parent.mkdir(parents=True)
    path.write_text(edit)
    with pytest.raises(SpecError, match="SEA498: it is not the template that was published"):
        published_versions(loaded, "lab")


def test_a_version_is_changed_by_what_its_template_is_made_from(tmp_path: Path) -> None:
    file, environments = write_product(tmp_path), tmp_path / "environments"
    lock_sizes(file, environments)
    path = template_path(file, "1.0.0", "lab")

    def state(lab: dict[str, object] | None = None, **changes: object) -> str:
        write_product(tmp_path, lab=lab, **changes)
        return publication_state(load_product(file, environments), "lab")

    assert state() == "not published"
    loaded = load_product(file, environments)
    path.parent.mkdir(parents=True)
    deployments = product_deployments(loaded, "lab")
    path.write_text(json.dumps(sealed({}, made_from(loaded, deployments))))
    assert state() == "published without its source"
    source_path(path).write_text(source_text(loaded, deployments))
    assert state() == "published"
    kept = {"principals": [ROLE], "deprecated": ["0.9.0"], "support": {"email": "a@example.com"}}
    assert state({"owner": "platform"}, **kept) == "published"
    assert state({"trial_schedule": "rate(7 days)"}) == "changed"
    assert state({"tags": {"stage": "test"}}) == "changed"
    assert state(parameters={"teams": ["search"]}) == "changed"


def offer(folder: Path, version: str) -> None:
    """Lock the sizes, and write what stands for the template of a version, with its source."""
    environments = folder / "environments"
    file = write_product(folder, version=version)
    lock_sizes(file, environments)
    loaded = load_product(file, environments)
    deployments, path = product_deployments(loaded, "lab"), template_path(file, version, "lab")
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(sealed({}, made_from(loaded, deployments))))
    source_path(path).write_text(source_text(loaded, deployments))


TWO_COPIES: dict[str, object] = {"small": {"scaling": {"max_copies": 2}}}


class TestAGuardRailThatIsTightened:
    """Version 1.0.0 has a size of three copies; of 1.1.0 there are two copies at most."""

    @pytest.fixture(scope="class")
    @classmethod
    def published(cls, tmp_path_factory: pytest.TempPathFactory) -> Path:
        folder = tmp_path_factory.mktemp("team")
        offer(folder, "1.0.0")
        path = template_path(folder / "products/chat.yaml", "1.1.0", "lab")
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(sealed({}, "from")))
        return folder

    @pytest.fixture
    def folder(self, published: Path, tmp_path: Path) -> Path:
        return Path(shutil.copytree(published, tmp_path / "team"))

    def told(self, folder: Path, rails: dict[str, object], *, deprecated: tuple[str, ...] = ()) -> list[str]:
        """Return what is told of what may be launched while guard rails hold."""
        changes: dict[str, object] = {"version": "1.1.0", "sizes": TWO_COPIES, "deprecated": [*deprecated]}
        file = write_product(folder, lab={"guard_rails": rails}, **changes)
        try:
            published_versions(load_product(file, folder / "environments"), "lab")
        except SpecError as error:
            return [f"{problem}" for problem in error.problems]
        return []

    def test_forbids_the_versions_that_it_would_not_let_be_published(self, folder: Path) -> None:
        assert self.told(folder, {"max_copies": 3}) == []
        (one,) = self.told(folder, {"max_copies": 2})
        assert "SEA487: version 1.0.0 is offered: size large: max_copies 3 exceeds lab's guard rail 2" in one
        assert "add 1.0.0 to `deprecated`" in one

    def test_holds_for_what_was_planned_then(self, folder: Path) -> None:
        told = self.told(folder, {"usd_per_hour": 7})
        assert [one.partition(": size ")[2].partition(": $")[0] for one in told] == ["large"]

    def test_lets_a_deprecated_version_be(self, folder: Path) -> None:
        assert self.told(folder, {"max_copies": 2}, deprecated=("1.0.0",)) == []

    @pytest.mark.parametrize("harm", ["missing", "of another version", "no JSON"])
    def test_forbids_what_it_can_not_judge(self, folder: Path, harm: str) -> None:
        file = source_path(template_path(folder / "products/chat.yaml", "1.0.0", "lab"))
        if harm == "missing":
            file.unlink()
        else:
            file.write_text(file.read_text().replace("A chat", "Another") if harm == "of another version" else "[")
        (one,) = self.told(folder, {"max_copies": 3})
        assert "SEA487: version 1.0.0 is offered: it can't be held against the guard rails of lab: " in one
        assert self.told(folder, {}) == [], "there is nothing to be held against"
