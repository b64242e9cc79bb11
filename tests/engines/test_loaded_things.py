"""For any options of a spec: where the rail on models lets them pass, the container loads nothing that it forbids."""

from __future__ import annotations

import json
import re
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st

from seatrial.engines.render import render_plan
from seatrial.specs import shapes
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.guardrails.checks import guard_rail_problems
from seatrial.specs.guardrails.limits import GuardRails
from seatrial.specs.load import LoadedSpec
from seatrial.specs.yaml_source import Document
from seatrial_base.catalog.engine_options import LOADING_OPTIONS, bare_name, every_known_name
from seatrial_base.errors import RenderError
from tests.sample_plan import decided, sample_plan

NOTHING = sorted(name for row in LOADING_OPTIONS.rows if row.what == "nothing" for name in row.names)
LOADING = sorted({name for row in LOADING_OPTIONS.rows for name in row.names} - {*NOTHING})
KNOWN = sorted(name for name in every_known_name() - set(LOADING) if re.fullmatch(shapes.OPTION_NAME, name))
TEMPLATES = ("chat_template", "completion_template")
VERSIONS = {"lmi": "27", "vllm": "0.26.0", "tgi": "3.3.6", "sglang": "0.5.20"}
TEXTS = st.sampled_from(
    ["evil/model", "s3://evil/weights/", "/srv/evil", "evil", "auto", "meta-llama/draft", "evil.Class", "a,evil/model"]
)
VALUES = (
    TEXTS
    | st.integers(0, 9)
    | st.booleans()
    | st.recursive(
        TEXTS,
        lambda inner: (
            st.dictionaries(st.sampled_from(["model", "draft", "auto_map", "x", "a_plugin"]), inner, min_size=1)
            | st.lists(inner, min_size=1)
        ),
        max_leaves=4,
    ).map(json.dumps)
)
NAMES = st.sampled_from([*LOADING, *KNOWN, "option_of_tomorrow"]).flatmap(
    lambda name: st.sampled_from([name, name.upper(), name.title()])
)
OPTIONS = st.dictionaries(NAMES, VALUES, min_size=1, max_size=3)


def loaded_with(extra: dict[str, str | int | bool], engine: str) -> LoadedSpec:
    endpoint = EndpointSpec.model_validate(
        {
            "name": "chat",
            "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
            "serving": {"engine": engine, "overrides": {"extra": extra}},
        }
    )
    rails = GuardRails.model_validate({"models": ["meta-llama/*"]})
    place = EnvironmentSpec(name="dev", region="us-east-1", guard_rails=rails)
    return LoadedSpec(
        Path("chat.yaml"), endpoint, place, Document("chat.yaml", {}, {}, {}), Document("dev.yaml", {}, {}, {})
    )


@settings(max_examples=300, deadline=None)
@given(extra=OPTIONS, engine=st.sampled_from(sorted(VERSIONS)))
@example(extra={"Tokenizer": "evil/model"}, engine="vllm")
@example(extra={"aggregate_engine_logging": '"evil.Class"'}, engine="lmi")
@example(extra={"aggregate_engine_logging": "'evil.Class'"}, engine="lmi")
@example(extra={"code_revision": "evil.Class"}, engine="lmi")
@example(extra={"adapter": '{"model": "auto", "draft": "evil"}'}, engine="lmi")
@example(extra={"speculative_config": '{"model": "evil/model"}'}, engine="lmi")
@example(extra={"aggregate_engine_logging": '"evil.Class"'}, engine="lmi")
@example(extra={"structured_outputs_config": '{"reasoning_parser_plugin": "/srv/evil.py"}'}, engine="vllm")
def test_what_the_rail_on_models_forbids_is_never_told_to_a_container(
    extra: dict[str, str | int | bool], engine: str
) -> None:
    loaded = loaded_with(extra, engine)
    if any(guard_rail_problems(loaded.endpoint, loaded.environment, loaded.document, loaded.place)):
        return
    try:
        config = render_plan(loaded, sample_plan(engine=decided(engine), engine_version=decided(VERSIONS[engine])))
    except RenderError:
        return
    properties = "".join(config.files.values()).splitlines()
    told = {**config.container_env, **{line.partition("=")[0]: line.partition("=")[2] for line in properties}}
    named = {bare_name(name): value for name, value in told.items() if "evil" in value}
    assert set(named) <= {*KNOWN, *TEMPLATES}, "a text with braces is the template itself"
    others = {
        name: value
        for name, value in named.items()
        # A revision is one of the model's repository, which the rail allows.
        if name not in {*NOTHING, *TEMPLATES} and not name.lower().endswith("revision")
    }
    assert not [value for value in others.values() if re.search(r"evil[/.]|/evil", value)], "only a word may be told"


def test_the_options_that_load_are_in_small_letters_and_have_a_source() -> None:
    assert all(name == name.lower() and row.source for row in LOADING_OPTIONS.rows for name in row.names)
