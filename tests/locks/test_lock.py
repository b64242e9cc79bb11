from __future__ import annotations

import json
import resource
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from seatrial.locks.lock_file import freshness_of, read_locked_plan, write_lock
from seatrial.locks.path import lock_path
from seatrial.planner.planner import make_plan
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
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
