"""A locked plan that someone edits: refused when it is read, with what differs; or beyond what is allowed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.documents.plan import Image
from seatrial.locks.guard_rails import limit_problems, rail_problems
from seatrial.locks.lock_file import changed_fields, seal_of, write_lock
from seatrial.locks.locked_plan import read_edited_plan, read_locked_plan
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial_base.errors import SpecError
from tests.sample_plan import COST, decided, image_of, sample_plan

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.documents.plan import Plan
    from seatrial.specs.load import LoadedSpec
    from tests.planner.conftest import Ask

LOCK = Path("chat.lock.json")
HINT = (
    "\n  hint: restore the committed lock, plan again (`seatrial plan chat.yaml --environment dev --write`), or adopt "
    "the changes (`seatrial plan chat.yaml --environment dev --adopt`)"
)
AGAIN = "\n  hint: plan again (`seatrial plan chat.yaml --environment dev --write`), or change the limit"
FOREIGN = "666666666666.dkr.ecr.us-east-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130"
Where = tuple[str | int, ...]


def edit(*path: str | int, value: object) -> None:
    """Set one value of the locked plan by hand."""
    document = json.loads(LOCK.read_text(encoding="utf-8"))
    put(document["environments"]["dev"], path, value)
    LOCK.write_text(json.dumps(document, indent=2), encoding="utf-8")


def put(node: object, path: Where, value: object) -> None:
    for part in path[:-1]:
        node = node[part]  # type: ignore[index]
    node[path[-1]] = value  # type: ignore[index]


def leaves(node: object, path: Where = ()) -> Iterator[tuple[Where, object]]:
    """Yield every value of a JSON document that holds no other."""
    inner = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    nothing_inside = True
    for name, value in inner:
        nothing_inside = False
        yield from leaves(value, (*path, name))
    if nothing_inside:
        yield path, node


def refusal(loaded: LoadedSpec) -> str:
    with pytest.raises(SpecError) as caught:
        read_locked_plan(loaded)
    return str(caught.value)


def locked(ask: Ask, **fields: object) -> LoadedSpec:
    loaded = ask(**fields)
    write_lock(make_plan(loaded), loaded.path)
    return loaded


class TestSeal:
    def test_another_instance_type_is_refused_by_name(self, ask: Ask) -> None:
        loaded = locked(ask, serving={})
        edit("instance_type", "value", value="ml.p5.48xlarge")
        assert refusal(loaded) == (
            f"chat.lock.json: dev.instance_type: SEA411: changed by hand: now ml.p5.48xlarge{HINT}"
        )

    def test_every_changed_field_is_told_with_the_limits_that_it_breaks(self, ask: Ask) -> None:
        loaded = locked(ask)
        edit("copy_count", "value", value=500)
        edit("image", "value", "uri", value=FOREIGN)
        registry = "763104351884.dkr.ecr.us-east-1.amazonaws.com/djl-inference"
        assert refusal(loaded) == (
            f"chat.lock.json: dev.copy_count: SEA411: changed by hand: now 500{HINT}\n"
            f"chat.lock.json: dev.image: SEA411: changed by hand: now {FOREIGN}{HINT}\nchat.lock.json: "
            f"dev.copy_count: SEA414: 500 exceeds 1, which scaling.max_copies allows "
            f"(chat.yaml){AGAIN}\nchat.lock.json: dev.image: SEA415: {FOREIGN} is not in a known registry for lmi in "
            f"us-east-1: {registry}\n  hint: set serving.image in the spec for an image of your own, and plan again"
        )

    def test_a_field_that_was_added_by_hand_is_told(self, ask: Ask) -> None:
        """A plan has no `promoted` of itself: who adds it claims a trial that was never passed."""
        loaded = locked(ask)
        assert "promoted" not in json.loads(LOCK.read_text(encoding="utf-8"))["environments"]["dev"]
        names = ("plan_digest", "spec_digest", "result_uri", "report_uri", "request_id")
        claimed = dict.fromkeys(names, "x") | {"source": "staging", "verdict": "pass"}
        edit("promoted", value={**claimed, "ended_at": "2026-11-21T01:01:01+00:00", "knee_concurrency_per_copy": 16.0})
        assert refusal(loaded).startswith("chat.lock.json: dev.promoted: SEA411: changed by hand")

    def test_a_reason_is_a_part_of_the_plan(self, ask: Ask) -> None:
        loaded = locked(ask)
        edit("dtype", "because", value="Trust me.")
        assert "dev.dtype: SEA411: changed by hand" in refusal(loaded)

    def test_also_a_stale_plan_must_be_what_was_written(self, ask: Ask) -> None:
        loaded = locked(ask)
        edit("copy_count", "value", value=2)
        with pytest.raises(SpecError, match="SEA411"):
            read_locked_plan(loaded, stale=True)

    def test_a_lock_of_an_older_release_has_no_digest(self, ask: Ask) -> None:
        loaded = locked(ask)
        document = json.loads(LOCK.read_text(encoding="utf-8"))
        del document["digests"]
        LOCK.write_text(json.dumps(document), encoding="utf-8")
        assert refusal(loaded) == (
            "chat.lock.json: dev: SEA411: the plan has no digest, so changes by hand can't be detected"
            "\n  hint: run `seatrial plan chat.yaml --environment dev --write`"
        )

    def test_planning_for_one_environment_seals_no_other(self, ask: Ask) -> None:
        loaded = locked(ask)
        edit("copy_count", "value", value=2)
        write_lock(make_plan(loaded).model_copy(update={"environment": "prod"}), loaded.path)
        assert "dev.copy_count: SEA411" in refusal(loaded)

    def test_another_order_and_layout_change_nothing(self, ask: Ask) -> None:
        loaded = locked(ask)
        document = json.loads(LOCK.read_text(encoding="utf-8"))
        plan = document["environments"]["dev"]
        document["environments"]["dev"] = dict(reversed(plan.items()))
        LOCK.write_text(json.dumps(document), encoding="utf-8")
        assert read_locked_plan(loaded) == make_plan(loaded)

    @given(st.data())
    @settings(max_examples=150, deadline=None)
    def test_any_other_value_anywhere_is_found_with_its_field(self, data: st.DataObject) -> None:
        document: dict[str, object] = json.loads(json.dumps(sample_plan().model_dump(mode="json")))
        seal = seal_of(document)
        path, old = data.draw(st.sampled_from(sorted(leaves(document), key=str)))
        scalar = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
        new = data.draw(scalar.filter(lambda value: json.dumps(value) != json.dumps(old)))
        put(document, path, new)
        assert changed_fields(document, seal) == (path[0],)

    @pytest.mark.parametrize("new", [None, True, 999, 1.5, "other"])
    def test_no_changed_value_of_the_file_is_read(self, ask: Ask, new: object) -> None:
        loaded = locked(ask)
        text = LOCK.read_text(encoding="utf-8")
        for path, old in leaves(json.loads(text)):
            if json.dumps(old) == json.dumps(new):
                continue
            document = json.loads(text)
            put(document, path, new)
            LOCK.write_text(json.dumps(document), encoding="utf-8")
            with pytest.raises(SpecError, match="SEA4"):
                read_locked_plan(loaded)


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(copies=st.integers(1, 1000), target=st.floats(0.1, 1e6), because=st.text(), warning=st.text())
def test_whatever_is_written_is_read_back(ask: Ask, copies: int, target: float, because: str, warning: str) -> None:
    loaded = ask()
    plan = sample_plan(
        copy_count=decided(copies),
        target_concurrency_per_copy=decided(target),
        model_name=because,
        warnings=(warning,),
    )
    write_lock(plan, loaded.path)
    read, changed = read_edited_plan(loaded)
    assert (read, changed.fields) == (plan, ())


class TestLimits:
    def place(self, ask: Ask, rails: dict[str, object], **fields: object) -> LoadedSpec:
        """Tighten the environment after the plan was made."""
        loaded = ask(**fields)
        place = {"name": "dev", "region": "us-east-1", "guard_rails": rails}
        Path("environments/dev.yaml").write_text(yaml.safe_dump(place, sort_keys=False), encoding="utf-8")
        return load_spec(loaded.path, "dev", environments=Path("environments"))

    def problems(self, loaded: LoadedSpec, **fields: object) -> list[str]:
        plan: Plan = sample_plan(max_copies=1, max_instances=1, **fields)
        return [f"{each.field}: {each.rule}: {each.message}" for each in limit_problems(plan, loaded)]

    def test_a_plan_within_everything_has_none(self, ask: Ask) -> None:
        assert self.problems(ask()) == []

    def test_a_rail_on_jobs_that_was_set_later(self, ask: Ask) -> None:
        model = {"s3_uri": "s3://weights/llama/", "architecture": "meta-llama/Llama-2-7b-chat-hf"}
        fields = {"model": {**model, "licence": "llama2"}, "optimization": [{"awq": {"job": {"max_hours": 100}}}]}
        assert self.problems(self.place(ask, {"job_usd": 100}, serving={}, **fields)) == [
            "dev.instance_type: SEA413: $151.50 at list prices for 100 h of ml.g5.2xlarge exceeds $100.00, which "
            "guard_rails.job_usd allows (environments/dev.yaml:4)"
        ]

    @pytest.mark.parametrize(
        ("rails", "expected"),
        [
            (
                {"instance_types": ["ml.g6e.2xlarge", "ml.g5.4xlarge"]},
                "dev.instance_type: SEA413: ml.g5.2xlarge is not among ml.g6e.2xlarge, ml.g5.4xlarge, which "
                "guard_rails.instance_types allows (environments/dev.yaml:4)",
            ),
            (
                {"usd_per_hour": 1.5},
                "dev.cost.usd_per_hour: SEA413: $3.03 per hour at list prices for 1 x ml.g5.2xlarge and 1 more in an "
                "update exceeds $1.50, which guard_rails.usd_per_hour allows (environments/dev.yaml:4)",
            ),
            (
                {"engines": ["vllm", "tgi"]},
                "dev.engine: SEA413: lmi is not among vllm, tgi, which guard_rails.engines allows "
                "(environments/dev.yaml:4)",
            ),
            (
                {"usd_per_million_output_tokens": 0.5},
                "dev.cost.usd_per_million_output_tokens: SEA413: $1.20 at list prices exceeds "
                "$0.50, which guard_rails.usd_per_million_output_tokens allows (environments/dev.yaml:4)",
            ),
        ],
    )
    def test_a_guard_rail_that_was_set_later(self, ask: Ask, rails: dict[str, object], expected: str) -> None:
        assert self.problems(self.place(ask, rails, serving={})) == [expected]

    @pytest.mark.parametrize("field", ["copy_count", "max_copies"])
    def test_one_copy_more_than_the_spec_allows_is_too_many(self, ask: Ask, field: str) -> None:
        loaded = ask(scaling={"max_copies": 1})
        counts = {"copy_count": decided(2), "max_copies": 1} if field == "copy_count" else {"max_copies": 2}
        plan: Plan = sample_plan(**{"max_instances": 1, **counts})
        assert f"dev.{field}" in [each.field for each in limit_problems(plan, loaded)]

    def test_a_guard_rail_tells_its_owner(self, ask: Ask) -> None:
        loaded = self.place(ask, {"max_copies": 1}, serving={})
        plan: Plan = sample_plan(max_copies=2)
        owned = replace(loaded, environment=loaded.environment.model_copy(update={"owner": "platform-team"}))
        (problem,) = rail_problems(plan, owned)
        assert "(set by platform-team in environments/dev.yaml:4)" in problem.message

    def test_a_price_on_the_rail_is_within(self, ask: Ask) -> None:
        assert self.problems(self.place(ask, {"usd_per_hour": 3.03})) == []
        assert len(self.problems(self.place(ask, {"usd_per_hour": 3.02}))) == 1

    @pytest.mark.parametrize(
        "rail", ["usd_per_hour", "usd_per_million_output_tokens", "blended_usd_per_million_tokens"]
    )
    def test_a_plan_without_a_price_breaks_each_rail_on_money(self, ask: Ask, rail: str) -> None:
        unknown = COST.model_copy(update=dict.fromkeys(type(COST).model_fields, None) | {"discount": 0.0})
        (problem,) = self.problems(
            self.place(ask, {rail: 900}, serving={}), cost=unknown, instance_type=decided("ml.unknown.xlarge")
        )
        assert problem.startswith(f"dev.cost.{rail}: SEA413: an unknown price at list prices")

    @pytest.mark.parametrize("budget", ["usd_per_hour", "usd_per_million_output_tokens"])
    def test_a_plan_without_a_price_breaks_the_budget(self, ask: Ask, budget: str) -> None:
        unknown = COST.model_copy(update=dict.fromkeys(type(COST).model_fields, None) | {"discount": 0.0})
        (problem,) = self.problems(ask(budget={budget: 900}), cost=unknown)
        assert problem.startswith(f"dev.cost.{budget}: SEA414: an unknown price exceeds $900.00")

    def test_a_price_in_the_lock_does_not_count_for_a_rail(self, ask: Ask) -> None:
        """Whoever writes a spec can write its lock, with new digests."""
        cheap = COST.model_copy(update={"usd_per_hour": 0.015, "usd_per_million_output_tokens": 0.012})
        rails: dict[str, object] = {"usd_per_hour": 3.0, "usd_per_million_output_tokens": 1.19}
        found = self.problems(self.place(ask, rails, serving={}), cost=cheap)
        assert [each.partition(": ")[0] for each in found] == [
            "dev.cost.usd_per_hour",
            "dev.cost.usd_per_million_output_tokens",
        ]

    def test_a_discount_lifts_no_rail(self, ask: Ask) -> None:
        half = {name: getattr(COST, name) / 2 for name in ("usd_per_hour", "usd_per_million_output_tokens")}
        discounted = COST.model_copy(update={**half, "discount": 0.5})
        rails: dict[str, object] = {"usd_per_hour": 3.0, "usd_per_million_output_tokens": 1.19}
        found = self.problems(self.place(ask, rails, serving={}, budget={"discount": 0.5}), cost=discounted)
        assert [each.partition(" at list")[0].rpartition(": ")[2] for each in found] == ["$3.03 per hour", "$1.20"]

    def test_a_stale_lock_tells_the_rail_too(self, ask: Ask) -> None:
        loaded = locked(ask, serving={"instance_types": ["ml.g5.2xlarge"]}, scaling={"max_copies": 2})
        tightened = self.place(ask, {"usd_per_hour": 2}, scaling={"max_copies": 2})
        text = refusal(tightened)
        assert "dev: SEA402: " in text
        assert f"planned {loaded.digest}\n" in text
        assert (
            "dev.cost.usd_per_hour: SEA413: $6.06 per hour at list prices for 2 x ml.g5.2xlarge and 2 more in an "
            "update exceeds $2.00, which guard_rails.usd_per_hour allows (environments/dev.yaml:4)"
        ) in text

    def test_the_limits_of_the_spec(self, ask: Ask) -> None:
        loaded = ask(
            budget={"usd_per_hour": 1},
            serving={"instance_types": ["ml.g6e.2xlarge"]},
            scaling={"min_copies": 2, "max_copies": 3},
        )
        assert [line.partition(": ")[0] for line in self.problems(loaded)] == [
            "dev.instance_type",
            "dev.copy_count",
            "dev.cost.usd_per_hour",
        ]

    @pytest.mark.parametrize(
        "uri",
        [
            FOREIGN,
            "763104351884.dkr.ecr.eu-west-1.amazonaws.com/djl-inference:0.36.0-lmi27.0.0-cu130",
            "763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:2.4",
            "763104351884.dkr.ecr.us-east-1.evil.example/djl-inference:0.36.0-lmi27.0.0-cu130",
            "djl-inference",
            "",
        ],
    )
    def test_an_image_of_another_registry_region_or_engine(self, ask: Ask, uri: str) -> None:
        assert [each.rpartition(": ")[0][:20] for each in self.problems(ask(), image=decided(image_of(uri)))] != []

    def test_an_address_that_names_another_tag_than_the_plan(self, ask: Ask) -> None:
        image = image_of(sample_plan().image.value.uri)
        other = Image(uri=image.uri.replace("lmi27", "lmi26"), repository=image.repository, tag=image.tag)
        (problem,) = self.problems(ask(), image=decided(other))
        assert problem.startswith("dev.image: SEA415: ")
        assert problem.endswith(f"and {image.repository}:{image.tag} name different images")

    def test_the_image_that_the_spec_gives_is_allowed_and_no_other(self, ask: Ask) -> None:
        loaded = ask(serving={"instance_types": ["ml.g5.2xlarge"], "image": FOREIGN})
        assert self.problems(loaded, image=decided(image_of(FOREIGN))) == []
        assert self.problems(loaded) == [
            f"dev.image: SEA415: {sample_plan().image.value.uri} is not {FOREIGN}, which serving.image allows "
            "(chat.yaml:11)"
        ]
