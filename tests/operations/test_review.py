"""Which files affect which endpoints, and how a comment is written: escaped, and short enough."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from seatrial.operations.review.changes import findings, loosened_rails
from seatrial.operations.review.review import Review
from seatrial.operations.review.side import (
    EndpointPlace,
    EndpointState,
    RepositorySide,
    affected,
    is_code_changed,
    places,
)
from seatrial.operations.review.writers import review_markdown
from seatrial.planner.planner import make_plan
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import load_spec, with_recipe
from seatrial.specs.recipe import parse_recipe

REPOSITORY = Path(__file__).parents[2]
LLAMA = {("llama-2-7b-chat", name) for name in ("dev", "local", "prod")}
EVERY = {
    (name, environment)
    for name in ("falcon-40b", "llama-2-7b-chat", "mixtral-8x7b")
    for environment in ("dev", "local", "prod")
}


@pytest.fixture
def side(tmp_path: Path) -> RepositorySide:
    for folder in ("endpoints", "environments"):
        shutil.copytree(REPOSITORY / folder, tmp_path / folder)
    return RepositorySide(
        top=tmp_path, root=tmp_path, endpoints=tmp_path / "endpoints", environments=tmp_path / "environments"
    )


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("endpoints/llama-2-7b-chat.yaml", LLAMA),
        ("endpoints/llama-2-7b-chat.lock.json", LLAMA),
        ("endpoints/llama-2-7b-chat.calibration.json", LLAMA),
        ("endpoints/shapes/model.json", LLAMA),
        ("endpoints/unnamed/model.json", set()),
        ("endpoints/removed.yaml", set()),
        ("environments/dev.yaml", {place for place in EVERY if place[1] == "dev"}),
        ("environments/prices.yaml", EVERY),
        ("environments/others.yaml", set()),
        ("constructs/a.py", EVERY),
        ("app.py", EVERY),
        ("requirements.txt", EVERY),
        ("docs/a.py", set()),
        ("README.md", set()),
        ("Makefile", set()),
        ("stacks/Makefile", EVERY),
        (".github/workflows/a.yml", set()),
    ],
)
def test_a_file_affects(side: RepositorySide, path: str, expected: set[tuple[str, str]]) -> None:
    with (side.endpoints / "llama-2-7b-chat.yaml").open("a") as file:
        file.write("# config_file: shapes/model.json\n")
    assert affected(side, [path], places(side)) == {EndpointPlace(*one) for one in expected}


@pytest.mark.parametrize(
    ("path", "expected"),
    [("stacks/a.py", True), ("cdk.json", True), ("endpoints/a.yaml", False), ("docs/a.md", False)],
)
def test_code_is_what_is_neither_spec_nor_text(side: RepositorySide, path: str, expected: bool) -> None:  # noqa: FBT001 (a case)
    assert is_code_changed(side, [path]) is expected


@pytest.mark.parametrize(("most", "fits"), [(4_000, False), (65_000, True)])
def test_a_comment_that_is_too_long_says_what_is_left_out(most: int, fits: bool) -> None:  # noqa: FBT001 (a case)
    unlocked = tuple(f"endpoints/chat-{number}.yaml" for number in range(100))
    text = review_markdown(
        Review(endpoints=(), services=(), quotas=(), unlocked=unlocked, products=(), compared=100),
        base="main",
        most=most,
    )
    assert len(text) <= most
    assert text.count("has no plan yet") == (100 if fits else 0)
    assert ("1 detail." in text) is not fits


def test_what_is_compiled_anew_is_told() -> None:
    loaded = load_spec(
        REPOSITORY / "endpoints" / "llama-2-7b-chat.yaml", "dev", environments=REPOSITORY / "environments"
    )
    plan = make_plan(with_recipe(loaded, parse_recipe("compile=trtllm")))
    shorter = plan.model_copy(update={"max_model_len": plan.max_model_len.model_copy(update={"value": 2048})})

    (told,) = findings(EndpointState(plan=plan), EndpointState(plan=shorter))[0]

    assert findings(EndpointState(plan=plan), EndpointState(plan=plan))[0] == ()
    assert "compiled artifacts are made again" in told.message
    assert told.message.startswith("The sequence length changes from ")


@pytest.mark.parametrize(
    ("old", "new", "looser"),
    [
        ({"max_copies": 4}, {"max_copies": 8}, ["max_copies"]),
        ({"max_copies": 8}, {"max_copies": 4}, []),
        ({"usd_per_hour": 5}, {}, ["usd_per_hour"]),
        ({}, {"usd_per_hour": 5}, []),
        ({"models": ["a/*"]}, {"models": ["a/b"]}, []),
        ({"models": ["a/b"]}, {"models": ["a/*"]}, ["models"]),
        ({"models": ["a/b"]}, {}, ["code", "models"]),
        ({"required_tags": ["team", "stage"]}, {"required_tags": ["team"]}, ["required_tags"]),
        ({"required_tags": ["team"]}, {"required_tags": ["team", "stage"]}, []),
        ({"trial_mode": "rollback"}, {"trial_mode": "report"}, ["confidence", "on_inconclusive", "requests", "mode"]),
        ({"trial": {"confidence": 0.9}}, {"trial": {"confidence": 0.5}}, ["confidence"]),
        ({"slo": {"output_tok_s": 90}}, {"slo": {"output_tok_s": 100, "error_rate": 0.1}}, []),
        ({"slo": {"ttft_ms": {"p95": 90}}}, {"slo": {"ttft_ms": {"p95": 99}}}, ["p95"]),
        ({}, {"ssm_access": "allowed"}, ["ssm_access"]),
        ({"engines": ["lmi"]}, {"engines": ["lmi", "vllm"], "extra": ["plugins"]}, ["engines", "extra"]),
    ],
)
def test_what_a_guard_rail_no_longer_asks_is_looser(
    old: dict[str, object], new: dict[str, object], looser: list[str]
) -> None:
    before, after = (
        EnvironmentSpec.model_validate_json(json.dumps({"name": "dev", "region": "us-east-1", "guard_rails": rails}))
        for rails in (old, new)
    )
    fields = [change.field for change in loosened_rails(before, after)]
    assert len(fields) >= len(looser)
    assert all(any(word in field for field in fields) for word in looser)
    assert bool(fields) is bool(looser)


def test_what_protects_beside_the_guard_rails_counts_too() -> None:
    place = {"name": "prod", "region": "us-east-1", "network": {"isolated": True}}
    promotion = {"source": "dev", "required": True, "approval": "manual"}
    boundary = {"permissions_boundary": "arn:aws:iam::123456789012:policy/b"}
    strict = EnvironmentSpec.model_validate({**place, "promotion": promotion, "security": boundary})
    loose = EnvironmentSpec.model_validate({"name": "prod", "region": "us-east-1"})
    assert [change.field for change in loosened_rails(strict, loose)] == [
        "network.isolated",
        "promotion.approval",
        "promotion.required",
        "security.permissions_boundary",
    ]
    assert loosened_rails(loose, strict) == ()
