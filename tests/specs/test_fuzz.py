from __future__ import annotations

import string

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial.specs.contradictions import contradictions
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.load import validated
from seatrial.specs.pipeline import promotion_order
from seatrial.specs.product import size_source, written_field
from seatrial.specs.scaling import schedule_error
from seatrial.specs.yaml_source import Document, YamlSource, merge_environment, parse_source
from seatrial_base.errors import SpecError

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
FIELDS = st.sampled_from(["name", "model", "hub_id", "workload", "concurrency", "slo", "p95", "environments", "dev"])
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4), max_leaves=12
)
DAYS = ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT")
TAG_LETTERS = string.ascii_letters + string.digits + " _.:/=+@-"
NAMES = ("a", "b", "c", "d")
ORDERS = st.fixed_dictionaries({name: st.none() | st.sampled_from(NAMES) for name in NAMES})
LEAVES = st.integers(0, 9)
BRANCHES = st.dictionaries(
    st.sampled_from("uvw"), LEAVES | st.dictionaries(st.sampled_from("xyz"), LEAVES | st.none()), max_size=3
)


@given(st.text(max_size=200))
def test_any_text_is_read_or_refused_with_a_place(text: str) -> None:
    source = parse_source(text, "any.yaml")
    assert source.data or source.problems or text.strip() == "{}"
    assert all(problem.where.startswith("any.yaml") for problem in source.problems)


@given(st.dictionaries(FIELDS, TREES, max_size=5))
def test_any_mapping_is_accepted_or_every_problem_has_a_rule(data: dict[str, object]) -> None:
    document = merge_environment(YamlSource("any.yaml", data, {}), "dev")  # type: ignore[arg-type] # trees of YAML values
    _, problems = validated(EndpointSpec, document)
    assert all(problem.rule.startswith("SEA1") for problem in [*problems, *contradictions(document)])


def field(low: int, high: int, names: tuple[str, ...] = ()) -> st.SearchStrategy[str]:
    """Return one field of a cron expression: values, ranges and steps, in lists."""
    value = st.integers(low, high).map(str) | (st.sampled_from(names) if names else st.nothing())
    base = st.just("*") | value | st.tuples(value, value).map("-".join)
    item = base | st.tuples(base, st.integers(1, high).map(str)).map("/".join)
    return st.lists(item, min_size=1, max_size=3).map(",".join)


DAYS_OF = st.tuples(field(1, 31), st.just("?")) | st.tuples(st.just("?"), field(1, 7, DAYS))


@given(field(0, 59), field(0, 23), DAYS_OF, field(1, 12), field(1970, 2199))
def test_every_schedule_of_documented_parts_is_accepted(
    minutes: str, hours: str, days: tuple[str, str], month: str, year: str
) -> None:
    assert schedule_error(f"cron({minutes} {hours} {days[0]} {month} {days[1]} {year})") is None


@given(st.text("cronate()0123456789 ,-*/?LW#MON", max_size=40) | st.text(max_size=20))
@example("cron(0 6 ? * MON */10000)")
@example("cron(0 6 ?,1 * ? *)")
def test_any_other_text_is_no_schedule(text: str) -> None:
    assert schedule_error(text)


@given(st.dictionaries(st.text(TAG_LETTERS, max_size=130), st.text(TAG_LETTERS + "\n§", max_size=258), max_size=3))
def test_tags_are_accepted_as_aws_takes_them(tags: dict[str, str]) -> None:
    document = Document("any.yaml", {"name": "dev", "region": "us-east-1", "tags": dict(tags)}, {}, {})
    spec, _ = validated(EnvironmentSpec, document)
    allowed = all(0 < len(key) <= 128 and len(value) <= 256 for key, value in tags.items())
    assert (spec is not None) == (allowed and not any("\n" in value or "§" in value for value in tags.values()))


@given(BRANCHES, BRANCHES)
def test_each_field_of_a_size_is_told_where_the_product_has_it(
    base: dict[str, object], override: dict[str, object]
) -> None:
    places = {("endpoint",): base, ("sizes", "small"): override}
    lines = {
        (*place, key, *inner): 1
        for place, branch in places.items()
        for key, value in branch.items()
        for inner in ((), *((one,) for one in (value if isinstance(value, dict) else ())))
    }
    product = YamlSource("p.yaml", {"endpoint": base, "sizes": {"small": override}}, lines)  # type: ignore[dict-item]
    merged = size_source(product, "small")
    for path, value in leaves(merged.data):
        place, _, written = written_field(product, "small", ".".join(path)).partition(path[0])
        branch: object = places[tuple(place.strip(".").split("."))]
        for key in (path[0] + written).split("."):
            assert isinstance(branch, dict)
            branch = branch[key]
        assert (branch, path in merged.lines) == (value, True)


def leaves(tree: object, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], object]]:
    if isinstance(tree, dict):
        return [leaf for key, value in tree.items() for leaf in leaves(value, (*path, key))]
    return [] if path == ("name",) else [(path, tree)]


@settings(max_examples=25)
@given(sources=ORDERS)
def test_environments_follow_their_sources_or_the_cycle_is_told(
    sources: dict[str, str | None], tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("environments")
    for name, source in sources.items():
        told = "" if source is None else f"promotion: {{source: {source}}}\n"
        (folder / f"{name}.yaml").write_text(f"name: {name}\nregion: us-east-1\n{told}")
    circular = {name for name in NAMES if returns(name, sources)}
    if circular:
        with pytest.raises(SpecError) as caught:
            promotion_order(folder)
        told_of = {(each.rule, each.where.rpartition("/")[2].partition(".")[0]) for each in caught.value.problems}
        assert told_of == {("SEA121", name) for name in circular}
        return
    order = [each.name for each in promotion_order(folder)]
    assert sorted(order) == sorted(NAMES)
    assert all(source is None or order.index(source) < order.index(name) for name, source in sources.items())


def returns(name: str, sources: dict[str, str | None]) -> bool:
    """Tell whether an environment is among its own sources."""
    at = sources[name]
    for _ in sources:
        if at is None or at == name:
            break
        at = sources[at]
    return at == name
