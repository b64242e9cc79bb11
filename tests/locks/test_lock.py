from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import is_locked, locked_document, locked_environments, locked_provenance, write_lock
from seatrial.locks.locked_plan import (
    awaits_promotion,
    change_locked_plan,
    freshness_of,
    read_edited_plan,
    read_locked_plan,
)
from seatrial.planner.planner import make_plan
from seatrial.specs.spec_files import lock_path
from seatrial_base.errors import SpecError
from tests.locks.test_provenance import PROMOTED, requiring

if TYPE_CHECKING:
    from collections.abc import Callable

    from seatrial.documents.plan import Plan
    from tests.planner.conftest import Ask

HINT = "\n  hint: run `seatrial plan chat.yaml --environment dev --write`"
AGAIN = "\n  hint: plan again with this release, or restore the committed lock"


@pytest.fixture
def plan(ask: Ask) -> Plan:
    return make_plan(ask())


def test_lies_beside_the_spec() -> None:
    assert lock_path(Path("endpoints/chat.yaml")) == Path("endpoints/chat.lock.json")


def test_a_written_plan_is_read_back_equal(plan: Plan, ask: Ask) -> None:
    write_lock(plan, Path("chat.yaml"))

    assert read_locked_plan(ask()) == plan


def test_equal_plans_give_equal_bytes(plan: Plan) -> None:
    first = write_lock(plan, Path("chat.yaml")).read_bytes()
    second = write_lock(plan, Path("chat.yaml")).read_bytes()

    assert first == second
    assert first.endswith(b"}\n")
    assert json.loads(first)["schema_version"] == "1"


def test_the_plans_of_other_environments_stay(plan: Plan) -> None:
    write_lock(plan, Path("chat.yaml"))
    write_lock(plan.model_copy(update={"environment": "prod"}), Path("chat.yaml"))

    environments = json.loads(Path("chat.lock.json").read_text(encoding="utf-8"))["environments"]
    assert list(environments) == ["dev", "prod"]


def test_leaves_nothing_else_behind(plan: Plan, tmp_path: Path) -> None:
    write_lock(plan, Path("chat.yaml"))

    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat.lock.json", "chat.yaml", "environments"]


def test_a_lock_that_cant_be_read_is_left_alone(plan: Plan) -> None:
    Path("chat.lock.json").write_text("<<<<<<< ours", encoding="utf-8")

    with pytest.raises(SpecError, match="SEA403"):
        write_lock(plan, Path("chat.yaml"))

    assert Path("chat.lock.json").read_text(encoding="utf-8") == "<<<<<<< ours"


def test_no_lock(ask: Ask) -> None:
    loaded = ask()

    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)

    assert str(caught.value) == f"chat.lock.json: dev: SEA401: there is no lock{HINT}"


def test_no_plan_for_the_environment(plan: Plan, ask: Ask) -> None:
    write_lock(plan.model_copy(update={"environment": "prod"}), Path("chat.yaml"))

    with pytest.raises(SpecError) as caught:
        read_locked_plan(ask())

    assert str(caught.value) == f"chat.lock.json: dev: SEA401: there is no plan for dev{HINT}"


def test_a_changed_spec_makes_the_lock_stale(plan: Plan, ask: Ask) -> None:
    write_lock(plan, Path("chat.yaml"))
    loaded = ask(scaling={"max_copies": 2})

    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)

    assert str(caught.value) == (
        f"chat.lock.json: dev: SEA402: the spec changed after planning: digest {loaded.digest}, "
        f"planned {plan.spec_digest}{HINT}"
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "not JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        *((f"{'[' * depth}{']' * depth}", "not JSON: nested more than 100 deep") for depth in (101, 5_000, 100_000)),
        ("[" * 100_000, "not JSON: nested more than 100 deep"),
        ("[]", "not a lock"),
    ],
)
def test_an_unreadable_lock(text: str, message: str, ask: Ask) -> None:
    loaded = ask()
    Path("chat.lock.json").write_text(text, encoding="utf-8")

    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)

    assert str(caught.value) == f"chat.lock.json: SEA403: {message}{AGAIN}"


def test_a_lock_that_is_a_folder(ask: Ask) -> None:
    loaded = ask()
    Path("chat.lock.json").mkdir()

    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)

    assert str(caught.value) == f"chat.lock.json: SEA403: can't be read: Is a directory{AGAIN}"


def test_a_disk_that_takes_nothing_leaves_the_old_lock_and_nothing_else(plan: Plan, tmp_path: Path) -> None:
    before = write_lock(plan, Path("chat.yaml")).read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(SpecError) as caught:
            write_lock(plan, Path("chat.yaml"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))

    assert str(caught.value) == (
        "chat.lock.json: SEA403: can't be written: File too large\n  hint: the folder of the spec must be writable"
    )
    assert Path("chat.lock.json").read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["chat.lock.json", "chat.yaml", "environments"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"max_copies": "six"}, "max_copies: Input should be a valid integer, unable to parse string as an integer"),
        ({"surprise": 1}, "surprise: Extra inputs are not permitted"),
    ],
)
def test_an_unreadable_plan(change: dict[str, object], message: str, plan: Plan, ask: Ask) -> None:
    path = write_lock(plan, Path("chat.yaml"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["environments"]["dev"] |= change
    path.write_text(json.dumps(document), encoding="utf-8")

    with pytest.raises(SpecError) as caught:
        read_locked_plan(ask())

    assert str(caught.value) == f"chat.lock.json: dev: SEA403: {message}{AGAIN}"


@pytest.mark.parametrize(
    ("version", "hint"),
    [
        ("2", "run `seatrial migrate chat.lock.json --write`, or plan again with this release"),
        ("99", "a newer release of Seatrial wrote it: upgrade Seatrial"),
    ],
)
def test_a_plan_of_another_schema_says_what_to_do(version: str, hint: str, plan: Plan, ask: Ask) -> None:
    path = write_lock(plan, Path("chat.yaml"))
    document = json.loads(path.read_text(encoding="utf-8"))
    document["environments"]["dev"]["schema_version"] = version
    path.write_text(json.dumps(document), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_locked_plan(ask())
    (problem,) = caught.value.problems
    assert (problem.rule, problem.hint) == ("SEA403", hint)
    assert problem.message == f"the plan's schema_version is {version}; this release reads 3"


def test_a_lock_of_a_newer_schema_says_so(ask: Ask) -> None:
    loaded = ask()
    Path("chat.lock.json").write_text('{"schema_version": "2", "environments": {}}', encoding="utf-8")
    with pytest.raises(SpecError, match="schema_version is 2; this release reads 1\n  hint: a newer release"):
        read_locked_plan(loaded)


@pytest.mark.parametrize(
    "text", ["a note: {}", '{{"password": "{}"}}', "{}"], ids=["in a sentence", "in JSON", "alone"]
)
def test_a_credential_in_a_lock_is_refused_before_all_else_and_not_repeated(text: str, plan: Plan, ask: Ask) -> None:
    token = "hf_" + "Qw3rTyUiOpAsDfGhJkLzXcVbNm1234567"
    path = write_lock(plan, Path("chat.yaml"))
    lock = json.loads(path.read_text(encoding="utf-8"))
    lock["environments"]["dev"]["note"] = text.format(token)
    path.write_text(json.dumps(lock), encoding="utf-8")
    with pytest.raises(SpecError) as error:
        read_locked_plan(ask())
    (problem,) = error.value.problems
    assert (problem.rule, problem.place.file) == ("SEA113", "chat.lock.json")
    assert token[3:] not in str(error.value)
    with pytest.raises(SpecError, match="SEA113"):
        write_lock(plan, Path("chat.yaml"))


@pytest.mark.parametrize(
    "escaped", ["{{resolve:ssm:/prod/key}}", r"\u007b\u007bresolve:ssm:/prod/key}}", "${Token[A.1]}"]
)
def test_a_text_in_a_lock_that_would_be_replaced_is_refused(escaped: str, plan: Plan, ask: Ask) -> None:
    loaded = ask()
    lock = write_lock(plan, loaded.path)
    text = lock.read_text(encoding="utf-8").replace(plan.model_name, escaped, 1)
    lock.write_text(text, encoding="utf-8")
    with pytest.raises(SpecError, match="SEA137"):
        read_locked_plan(loaded)
    assert freshness_of(loaded).state == "unreadable"


def locked_with(plan: Plan, change: Callable[[dict[str, dict[str, dict[str, object]]]], object]) -> None:
    """Write a lock, and change its text."""
    path = write_lock(plan, Path("chat.yaml"))
    document = json.loads(path.read_text(encoding="utf-8"))
    change(document)
    path.write_text(json.dumps(document), encoding="utf-8")


def test_what_a_lock_holds_is_told_by_environment(plan: Plan, ask: Ask) -> None:
    loaded = ask()
    assert (locked_environments(loaded.path), is_locked(loaded), locked_document(loaded)) == (frozenset(), False, None)
    assert locked_provenance(loaded) is None
    write_lock(plan.model_copy(update={"environment": "prod", "promoted": PROMOTED}), loaded.path)
    assert (locked_environments(loaded.path), is_locked(loaded)) == (frozenset({"prod"}), False)
    write_lock(plan.model_copy(update={"promoted": PROMOTED}), loaded.path)
    assert (is_locked(loaded), locked_provenance(loaded)) == (True, PROMOTED)
    Path("chat.lock.json").write_text('{"schema_version": "1", "environments": {"dev": []}}', encoding="utf-8")
    assert (is_locked(loaded), locked_document(loaded)) == (True, None)


def test_a_locked_plan_is_changed_and_sealed_anew(plan: Plan, ask: Ask) -> None:
    write_lock(plan, Path("chat.yaml"))
    change_locked_plan(ask(), lambda before: before.model_copy(update={"warnings": ("other",)}))
    assert read_locked_plan(ask()).warnings == ("other",)


def test_a_stale_plan_is_read_where_it_may_be_stale_and_its_limits_are_not_checked(plan: Plan, ask: Ask) -> None:
    write_lock(plan, Path("chat.yaml"))
    loaded = ask(serving={"instance_types": ["ml.g6.2xlarge"]})
    assert read_locked_plan(loaded, stale=True) == plan
    assert freshness_of(loaded).state == "stale"


def test_only_a_fresh_plan_is_held_against_the_limits_of_the_spec(plan: Plan, ask: Ask) -> None:
    """Those of a spec that changed are the next plan's; the rails of the environment hold for what is deployed."""
    write_lock(plan, Path("chat.yaml"))
    found = freshness_of(ask(serving={"instance_types": ["ml.g6.2xlarge"]}, rails={"engines": ["vllm"]}))
    assert [problem.rule for problem in found.problems] == ["SEA402", "SEA413"]


@pytest.mark.parametrize(
    ("change", "fields", "messages"),
    [
        (lambda plan: plan.pop("dtype"), None, ["dev: SEA403: dtype: Field required"]),
        (lambda plan: plan.pop("promoted", None), (), []),
        (lambda plan: plan.update(max_copies=2), ("max_copies",), ["dev.max_copies: SEA411: changed by hand: now 2"]),
        (
            lambda plan: plan.update(model_name="x" * 121),
            ("model_name",),
            ["dev.model_name: SEA411: changed by hand"],
        ),
        (
            lambda plan: plan.update(model_name="x" * 120),
            ("model_name",),
            [f"dev.model_name: SEA411: changed by hand: now {'x' * 120}"],
        ),
    ],
)
def test_each_change_by_hand_is_told_as_far_as_it_fits_into_a_line(
    plan: Plan,
    ask: Ask,
    change: Callable[[dict[str, object]], object],
    fields: tuple[str, ...] | None,
    messages: list[str],
) -> None:
    locked_with(plan, lambda lock: change(lock["environments"]["dev"]))
    if fields is None:
        with pytest.raises(SpecError) as caught:
            read_edited_plan(ask())
        problems = caught.value.problems
    else:
        _, changed = read_edited_plan(ask())
        assert changed.fields == fields
        assert changed.seal is not None
        problems = changed.problems
    assert [f"{each.field}: {each.rule}: {each.message}" for each in problems] == messages


def test_a_field_that_was_removed_and_a_digest_that_was_changed_are_told(plan: Plan, ask: Ask) -> None:
    sized = plan.model_copy(update={"generation": 2})
    locked_with(sized, lambda lock: lock["environments"]["dev"].pop("generation"))
    _, changed = read_edited_plan(ask())
    assert [(each.field, each.message) for each in changed.problems] == [("dev.generation", "changed by hand: removed")]
    locked_with(plan, lambda lock: lock["digests"]["dev"].update(plan="0" * 16))
    _, changed = read_edited_plan(ask())
    assert [(each.field, each.message) for each in changed.problems] == [("dev.digests", "changed by hand")]


@pytest.mark.parametrize(
    ("locked", "rails", "spec", "state"),
    [
        (None, {}, {}, "missing"),
        ("<<<<<<< ours", {}, {}, "unreadable"),
        ("plan", {}, {}, "fresh"),
        ("plan", {}, {"scaling": {"max_copies": 2}}, "stale"),
        ("edited", {}, {"scaling": {"max_copies": 2}}, "edited"),
        ("plan", {"engines": ["vllm"]}, {"serving": {}}, "stale"),
    ],
)
def test_the_state_of_a_lock_is_the_worst_of_its_problems(
    plan: Plan, ask: Ask, locked: str | None, rails: dict[str, object], spec: dict[str, object], state: str
) -> None:
    if locked == "edited":
        locked_with(plan, lambda lock: lock["environments"]["dev"].update(max_copies=2))
    elif locked == "plan":
        write_lock(plan, Path("chat.yaml"))
    elif locked is not None:
        Path("chat.lock.json").write_text(locked, encoding="utf-8")
    assert freshness_of(ask(rails=rails, **spec)).state == state


def test_a_fresh_plan_beyond_what_its_spec_allows_is_beyond_limits(plan: Plan, ask: Ask) -> None:
    """Whoever can write a lock can seal it too."""
    write_lock(plan.model_copy(update={"max_copies": 2}), Path("chat.yaml"))
    found = freshness_of(ask())
    assert (found.state, [each.rule for each in found.problems]) == ("beyond limits", ["SEA414"])
    write_lock(plan, Path("chat.yaml"))
    assert freshness_of(ask()).problems == ()
    weak = plan.gate_concurrency_per_copy.model_copy(update={"value": 2})
    write_lock(plan.model_copy(update={"gate_concurrency_per_copy": weak}), Path("chat.yaml"))
    (problem,) = freshness_of(ask()).problems
    assert (problem.rule, problem.field) == ("SEA414", "dev.gate_concurrency_per_copy")


def test_a_lock_that_a_promotion_mends_awaits_it_and_any_other_does_not(plan: Plan, ask: Ask) -> None:
    loaded = requiring(ask)
    missing = freshness_of(loaded)
    assert (missing.state, [each.rule for each in missing.problems]) == ("awaiting promotion", ["SEA401"])
    assert missing.problems[0].hint == "run `seatrial promote chat.yaml --from staging --to dev --write`"
    write_lock(plan, loaded.path)
    assert freshness_of(loaded).state == "awaiting promotion"
    locked_with(plan, lambda lock: lock["environments"]["dev"].update(max_copies=2))
    edited = freshness_of(loaded)
    assert (edited.state, {each.rule for each in edited.problems}) == ("edited", {"SEA411", "SEA414", "SEA478"})
    for required, rules, awaits in (
        (True, ["SEA402"], True),
        (True, ["SEA401", "SEA402", "SEA478"], True),
        (True, ["SEA402", "SEA411"], False),
        (True, [], False),
        (False, ["SEA402"], False),
    ):
        error = SpecError(missing.problems[0].__class__(rule, missing.problems[0].place, "x") for rule in rules)
        assert awaits_promotion(error, requiring(ask, required=required)) is awaits


@pytest.mark.parametrize(
    ("version", "is_newer"), [("2", True), ("0", False), (None, False), ("two", False), (1, False)]
)
def test_only_a_newer_lock_asks_for_an_upgrade(ask: Ask, version: object, *, is_newer: bool) -> None:
    loaded = ask()
    Path("chat.lock.json").write_text(json.dumps({"schema_version": version, "environments": {}}), encoding="utf-8")
    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)
    (problem,) = caught.value.problems
    assert (problem.rule, "upgrade Seatrial" in problem.hint) == ("SEA403", is_newer)


def test_a_folder_that_cannot_be_written_is_told(plan: Plan, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        write_lock(plan, tmp_path / "missing" / "chat.yaml")
    (problem,) = caught.value.problems
    assert (problem.rule, problem.field, problem.where.endswith("missing/chat.lock.json")) == ("SEA403", "", True)
    assert problem.hint == "the folder of the spec must be writable"
