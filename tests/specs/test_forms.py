"""The form of every text and the bounds of every number, told at `validate` and not by the container."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from huggingface_hub.utils._validators import validate_repo_id
from hypothesis import given
from hypothesis import strategies as st

from seatrial.specs.contradictions import contradictions
from seatrial.specs.endpoint import EndpointSpec, Slo
from seatrial.specs.load import load_spec, validated
from seatrial.specs.yaml_source import YamlSource, character_problems, merge_environment
from seatrial_base.bounds import wrong_objective
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from tests.specs.conftest import Write

LINE = "name: chat\nmodel: {hub_id: %s}\nworkload: {input_tokens: 1, output_tokens: 1, concurrency: 1}\n"
ANY = st.text(st.characters(codec=None, exclude_categories=()), max_size=30)
HUB_LIKE = st.text(st.sampled_from("aB9_.-/g it"), min_size=1, max_size=30)


def rules(text: str, write: Write, environments: Path) -> list[str]:
    try:
        load_spec(write(text), "dev", environments=environments)
    except SpecError as error:
        return [f"{problem.field} {problem.rule}" for problem in error.problems]
    return []


@pytest.mark.parametrize("hub_id", ["gpt2", "org/model", "meta-llama/Llama-2-7b-chat-hf", "a_b/c.d-e", "o/" + "n" * 96])
def test_ids_of_the_hub_are_accepted(hub_id: str, write: Write, environments: Path) -> None:
    assert rules(LINE % hub_id, write, environments) == []


@pytest.mark.parametrize(
    "hub_id",
    [
        "org/model\nengine=Python",
        "file:///etc/passwd",
        "/etc/passwd",
        "../../etc",
        "--trust-remote-code",
        "org/model --trust-remote-code",
        "https://hub.example/org/model",
        "a/b/c",
        "org/a--b",
        "org/a..b",
        "org/model.git",
        "org/",
        "o/" + "n" * 97,
        "",
    ],
)
def test_what_is_no_id_of_the_hub_is_refused_at_validate(hub_id: str, write: Write, environments: Path) -> None:
    found = rules(LINE % json.dumps(hub_id), write, environments)
    assert found
    assert set(found) <= {"model.hub_id SEA107", "model.hub_id SEA118"}


@given(HUB_LIKE)
def test_what_is_accepted_the_hub_accepts_too(hub_id: str) -> None:
    data = {"name": "chat", "model": {"hub_id": hub_id}}
    document = merge_environment(YamlSource("any.yaml", data, {}), None)  # type: ignore[arg-type] # trees of YAML values
    _, problems = validated(EndpointSpec, document)
    wrong = [*problems, *contradictions(document)]
    if not [problem for problem in wrong if problem.field == "model.hub_id"]:
        validate_repo_id(hub_id)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("serving.overrides.extra", {"a=1": "x"}),
        ("serving.overrides.extra", {"": "x"}),
        ("serving.overrides.extra", {"a\nb": "x"}),
        ("serving.overrides.extra", {"chat_template": "a\x1b[2J"}),
        ("serving.overrides.extra", {"chat_template": "\u202etxt"}),
        ("serving.engine_version", "lmi27\n"),
        ("model.revision", "main --trust"),
        ("model.revision", "\u202emain"),
        ("model.architecture", "a b"),
        ("description", "\x1b]0;title\x07"),
        ("workload.input_tokens", 10**30),
        ("workload.concurrency", 10**30),
        ("slo.output_tok_s", 1e300),
        ("budget.usd_per_hour", 1e300),
        ("serving.overrides.tensor_parallel_degree", 10**20),
        ("scaling.scale_in_cooldown_s", 10**20),
        ("trial.prefix_groups", 10**20),
    ],
)
def test_a_value_without_form_or_bound_is_refused(field: str, value: object, write: Write, environments: Path) -> None:
    *parents, name = field.split(".")
    document: dict[str, object] = json.loads(
        '{"name": "chat", "model": {"hub_id": "a/b"}, "serving": {"overrides": {}}, "slo": {}, "budget": {},'
        '"workload": {"input_tokens": 1, "output_tokens": 1, "concurrency": 1}, "scaling": {}, "trial": {}}'
    )
    node = document
    for parent in parents:
        inner = node[parent]
        assert isinstance(inner, dict)
        node = inner
    node[name] = value
    found = rules(json.dumps(document), write, environments)
    assert found
    assert all(problem.startswith(field) for problem in found)
    assert {problem[-6:] for problem in found} <= {"SEA107", "SEA118"}


@pytest.mark.parametrize(
    ("tags", "told"),
    [
        ({"team": "größe 1"}, []),
        ({"aws:x": "1"}, ["tags.aws:x SEA107"]),
        ({"a*b": "1"}, ["tags.a*b SEA107"]),
        ({"team": "a\x1b"}, ["tags.team SEA107", "tags.team SEA118"]),
        ({"": "1"}, ["tags. SEA107"]),
        ({"k" * 129: "1"}, [f"tags.{'k' * 129} SEA107"]),
    ],
)
def test_tags_are_those_that_aws_takes(
    tags: dict[str, str], told: list[str], write: Write, environments: Path, endpoint_text: str
) -> None:
    (environments / "dev.yaml").write_text(f"name: dev\nregion: us-east-1\ntags: {json.dumps(tags)}\n")
    assert rules(endpoint_text, write, environments) == told


@given(ANY, st.sampled_from(["hub_id", "revision", "architecture", "config_file", "jumpstart_id", "hub_token_secret"]))
def test_any_text_of_a_model_is_shown_as_itself_or_refused(text: str, field: str) -> None:
    source = YamlSource("any.yaml", {"model": {field: text}}, {})
    document = merge_environment(source, None)
    _, problems = validated(EndpointSpec, document)
    found = [problem.rule for problem in (*problems, *character_problems(source)) if problem.field == f"model.{field}"]
    assert found or text.isprintable()


@pytest.mark.parametrize(
    ("metric", "bound", "told"),
    [
        ("error_rate", -1.0, "-1 is not at least 0 and below 1"),
        ("error_rate", 5.0, "5 is not at least 0 and below 1"),
        ("error_rate", 0.0, ""),
        ("ttft_ms", -3.0, "-3 is not above 0 and at most 86,400,000 ms"),
        ("ttft_ms", 0.0, "0 is not above 0 and at most 86,400,000 ms"),
        ("ttft_ms", 500.0, ""),
        ("output_tok_s", 0.0, "0 is not above 0 and at most 1,000,000,000 tokens/s"),
    ],
)
def test_yaml_and_command_line_have_the_same_bounds(metric: str, bound: float, told: str) -> None:
    assert wrong_objective(metric, bound) == told
    field: dict[str, object] = {metric: {"p95": bound} if metric == "ttft_ms" else bound}
    try:
        Slo.model_validate(field)
    except ValueError:
        assert told
    else:
        assert not told


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("!!int zz", "the tag !!int needs a whole number"),
        ("!!int S3cretPassw0rd99", "the tag !!int needs a whole number"),
        ("!!int 'hf_abcdefghijklmnopqrstuvwxyz'", "the tag !!int needs a whole number"),
        ("!!int 08", "the tag !!int needs a whole number"),
        ("!!int ''", "the tag !!int needs a whole number"),
        ("!!float zz", "the tag !!float needs a number"),
        ("!!float _", "the tag !!float needs a number"),
        ("!!bool zz", "the tag !!bool needs true or false"),
        ("9" * 101, "a number has at most 100 characters"),
        ("9" * 5_000, "a number has at most 100 characters"),
        ("0x" + "f" * 6_000, "a number has at most 100 characters"),
        ("1" + ":1" * 3_000, "a number has at most 100 characters"),
        ("1:30", "YAML 1.1 reads this number in base 60"),
        ("1:30.5", "YAML 1.1 reads this number in base 60"),
        ("010", "YAML 1.1 reads this number in base 8"),
        ("-0_7", "YAML 1.1 reads this number in base 8"),
    ],
)
def test_a_scalar_that_is_no_number_or_another_than_it_looks_is_told_and_not_repeated(
    written: str, message: str, write: Write, environments: Path
) -> None:
    text = LINE % "gpt2" + f"scaling: {{min_copies: {written}}}\n"
    with pytest.raises(SpecError) as error:
        load_spec(write(text), "dev", environments=environments)
    problem = next(one for one in error.value.problems if one.rule == "SEA105")
    assert (problem.field, problem.place.line, problem.message) == ("scaling.min_copies", 4, message)
    assert written.removeprefix("!!int ").strip("'") not in str(error.value) or len(written) < 10


@pytest.mark.parametrize("number", ["1", "+1", "0x1", "0b1", "1_0", "0", "00", "100"])
def test_a_number_that_is_what_it_looks_like_is_read(number: str, write: Write, environments: Path) -> None:
    text = LINE % "gpt2" + f"scaling: {{min_copies: {number}, max_copies: 100}}\n"
    assert [one for one in rules(text, write, environments) if "SEA105" in one] == []


@pytest.mark.parametrize("version", ["true", "yes", "'1'", "2.5"])
def test_the_version_of_the_fields_is_a_number(version: str, write: Write, environments: Path) -> None:
    text = f"schema_version: {version}\n" + LINE % "gpt2"
    assert "schema_version SEA107" in rules(text, write, environments)


@pytest.mark.parametrize(
    "name", ["<img src=x onerror=alert(1)>.yaml", "a|b.yaml", "`a`.yaml", "a\nb.yaml", "$(id).yaml", "a;b.yaml"]
)
def test_a_file_whose_name_is_none_is_refused(name: str, environments: Path, tmp_path: Path) -> None:
    spec = tmp_path / name
    spec.write_text(LINE % "gpt2")
    with pytest.raises(SpecError) as error:
        load_spec(spec, "dev", environments=environments)
    assert [problem.rule for problem in error.value.problems] == ["SEA107"]


@pytest.mark.parametrize("name", ["chat.yaml", "My chat (2).yaml", "größe-数.v1_2.yaml", "a@b+c=d,e.yml"])
def test_a_file_may_have_any_name_that_people_give(name: str, environments: Path, tmp_path: Path) -> None:
    spec = tmp_path / name
    spec.write_text(LINE % "gpt2")
    assert load_spec(spec, "dev", environments=environments).endpoint.name == "chat"
