from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from seatrial.spec.cross_field_rules import contradictions
from seatrial.spec.endpoint import EndpointSpec
from seatrial.spec.load import validated
from seatrial.spec.yaml_source import YamlSource, merge_environment, parse_source

SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
FIELDS = st.sampled_from(["name", "model", "hub_id", "workload", "concurrency", "slo", "p95", "environments", "dev"])
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(FIELDS, inner, max_size=4), max_leaves=12
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
