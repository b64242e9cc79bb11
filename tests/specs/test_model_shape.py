"""`model.shape`: what its numbers may be, and what they must be to one another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from seatrial.specs.contradictions import contradictions, parameter_bounds
from seatrial.specs.endpoint import ModelShape
from seatrial.specs.load import load_spec
from seatrial.specs.shapes import SHAPE_HINTS
from seatrial.specs.yaml_source import Document
from seatrial_base.catalog.models import MODELS
from seatrial_base.errors import SpecError

if TYPE_CHECKING:
    from pathlib import Path

    from seatrial_base.catalog.architecture import Architecture

LLAMA_2_7B: dict[str, object] = {
    "layers": 32,
    "hidden_size": 4096,
    "attention_heads": 32,
    "vocab": 32_000,
    "max_context": 4096,
    "params_total": 6_738_415_616,
}
MIXTRAL_8X7B = {**LLAMA_2_7B, "kv_heads": 8, "params_total": 46_702_792_704, "experts": 8, "experts_per_token": 2}
AT = "endpoints/chat.yaml:4: model.shape"
HEAD_DIM = "head_dim: even, at most 1,024\n  hint: give head_dim, as the model's config.json does"
FAR = (
    "does not match 32 layers of width 4,096, which have 2 to 27 billion\n"
    "  hint: check params_total, layers and hidden_size against the model card"
)


class Write(Protocol):
    def __call__(self, text: str, name: str = ...) -> Path: ...


def with_shape(endpoint_text: str, shape: object) -> str:
    written = yaml.safe_dump(shape, default_flow_style=True, width=10_000).strip()
    return endpoint_text.replace("hub_id: org/model", f"hub_id: org/model\n  shape: {written}")


def problems_of(text: str, write: Write, environments: Path) -> list[str]:
    with pytest.raises(SpecError) as caught:
        load_spec(write(text), "dev", environments=environments)
    return [str(problem).replace(f"{environments.parent.as_posix()}/", "") for problem in caught.value.problems]


@pytest.mark.parametrize(
    "shape",
    [
        LLAMA_2_7B,
        MIXTRAL_8X7B,
        pytest.param({**LLAMA_2_7B, "layers": 1000, "params_total": 100_000_000_000}, id="as-many-layers-as-may-be"),
        pytest.param({**LLAMA_2_7B, "head_dim": 1024, "params_total": 21_000_000_000}, id="as-wide-a-head-as-may-be"),
        pytest.param({**LLAMA_2_7B, "params_total": 2_191_174_314}, id="a-third-of-the-narrowest"),
        pytest.param({**LLAMA_2_7B, "params_total": 26_556_235_776}, id="three-times-the-widest"),
        pytest.param({**LLAMA_2_7B, "params_active": 6_738_415_616}, id="all-active"),
        pytest.param({**LLAMA_2_7B, "sliding_window": 1024, "sliding_layers": 32}, id="every-layer-slides"),
    ],
)
def test_a_shape_within_its_bounds_is_accepted(
    shape: dict[str, object], write: Write, environments: Path, endpoint_text: str
) -> None:
    loaded = load_spec(write(with_shape(endpoint_text, shape)), "dev", environments=environments)

    read = loaded.endpoint.model.shape
    assert read is not None
    assert read.model_dump(exclude_unset=True) == shape


def test_what_is_left_out_has_its_documented_default(write: Write, environments: Path, endpoint_text: str) -> None:
    shape = load_spec(
        write(with_shape(endpoint_text, LLAMA_2_7B)), "dev", environments=environments
    ).endpoint.model.shape

    assert shape is not None
    assert (shape.kv_heads, shape.head_dim, shape.params_active, shape.experts) == (None, None, None, None)
    assert (shape.dtype, shape.tied_embeddings, shape.parallel_attention) == ("bf16", False, False)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            {"layers": 1001},
            f"{AT}.layers: SEA107: should be less than or equal to 1000, not 1001\n"
            "  hint: num_hidden_layers of the model's config.json",
            id="too-many-layers",
        ),
        pytest.param(
            {"attention_heads": 0},
            f"{AT}.attention_heads: SEA107: should be greater than or equal to 1, not 0\n"
            "  hint: num_attention_heads of the model's config.json",
            id="no-heads",
        ),
        pytest.param(
            {"vocab": -32_000},
            f"{AT}.vocab: SEA107: should be greater than or equal to 1, not -32000\n"
            "  hint: vocab_size of the model's config.json",
            id="negative",
        ),
        pytest.param(
            {"head_dim": 127},
            f"{AT}.head_dim: SEA107: should be a multiple of 2, not 127\n"
            "  hint: head_dim of the model's config.json, or hidden_size / attention_heads",
            id="an-odd-head",
        ),
        pytest.param(
            {"head_dim": 1026},
            f"{AT}.head_dim: SEA107: should be less than or equal to 1024, not 1026\n"
            "  hint: head_dim of the model's config.json, or hidden_size / attention_heads",
            id="a-huge-head",
        ),
        pytest.param(
            {"params_total": 7},
            f"{AT}.params_total: SEA107: should be greater than or equal to 1000000, not 7\n"
            "  hint: the number of parameters, as in 6738415616, not billions or bytes",
            id="billions",
        ),
        pytest.param(
            {"dtype": "fp32"},
            f"{AT}.dtype: SEA107: should be 'fp16' or 'bf16', not 'fp32'",
            id="another-type",
        ),
        pytest.param(
            {"heads": 32},
            f"{AT}.heads: SEA104: the field is unknown\n  hint: did you mean `kv_heads`?",
            id="unknown",
        ),
        pytest.param(
            {"kv_heads": 5},
            f"{AT}.kv_heads: SEA114: kv_heads 5 do not divide attention_heads 32\n"
            "  hint: take both from the model's config.json",
            id="kv-heads-do-not-divide",
        ),
        pytest.param(
            {"kv_heads": 64},
            f"{AT}.kv_heads: SEA114: kv_heads 64 do not divide attention_heads 32\n"
            "  hint: take both from the model's config.json",
            id="more-kv-heads-than-heads",
        ),
        pytest.param(
            {"attention_heads": 33},
            f"{AT}.attention_heads: SEA114: hidden_size 4,096 / attention_heads 33 is not a valid {HEAD_DIM}",
            id="heads-do-not-divide-the-width",
        ),
        pytest.param(
            {"attention_heads": 4096},
            f"{AT}.attention_heads: SEA114: hidden_size 4,096 / attention_heads 4,096 is not a valid {HEAD_DIM}",
            id="heads-of-one",
        ),
        pytest.param(
            {"experts": 8},
            f"{AT}.experts: SEA114: experts without experts_per_token\n  hint: give both, or neither for a dense model",
            id="experts-alone",
        ),
        pytest.param(
            {"experts": 8, "experts_per_token": 9},
            f"{AT}.experts_per_token: SEA114: experts_per_token 9 exceeds experts 8\n  hint: at most 8",
            id="more-experts-than-there-are",
        ),
        pytest.param(
            {"params_active": 6_738_415_617},
            f"{AT}.params_active: SEA114: params_active 6,738,415,617 exceeds params_total 6,738,415,616\n"
            "  hint: at most 6,738,415,616",
            id="more-active-than-total",
        ),
        pytest.param(
            {"params_active": 6_738_415_615},
            f"{AT}.params_active: SEA114: params_active 6,738,415,615 is below params_total 6,738,415,616, but the "
            f"model has no experts\n  hint: give experts and experts_per_token, or leave params_active out",
            id="fewer-active-of-a-dense-model",
        ),
        pytest.param(
            {"sliding_layers": 16},
            f"{AT}.sliding_layers: SEA114: sliding_layers without sliding_window\n"
            "  hint: give the window in tokens, or leave sliding_layers out",
            id="sliding-layers-without-a-window",
        ),
        pytest.param(
            {"sliding_window": 1024, "sliding_layers": 33},
            f"{AT}.sliding_layers: SEA114: sliding_layers 33 exceeds layers 32\n  hint: at most 32",
            id="more-sliding-layers-than-layers",
        ),
        pytest.param(
            {"params_total": 2_191_174_313},
            f"{AT}.params_total: SEA115: params_total 2,191,174,313 {FAR}",
            id="one-below-a-third",
        ),
        pytest.param(
            {"params_total": 26_556_235_777},
            f"{AT}.params_total: SEA115: params_total 26,556,235,777 {FAR}",
            id="one-above-three-times",
        ),
    ],
)
def test_one_mistake_gives_one_whole_message(
    change: dict[str, object], expected: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    text = with_shape(endpoint_text, {**LLAMA_2_7B, **change})
    assert problems_of(text, write, environments) == [expected]


def test_every_mistake_is_told_at_once(write: Write, environments: Path, endpoint_text: str) -> None:
    shape = {"layers": 0, "hidden_size": 4096, "attention_heads": 33, "kv_heads": 5, "vocab": 32_000, "experts": 8}
    told = problems_of(with_shape(endpoint_text, shape), write, environments)

    assert [problem.partition("\n")[0].removeprefix(f"{AT}.") for problem in told] == [
        "max_context: SEA106: the field is required",
        "params_total: SEA106: the field is required",
        "layers: SEA107: should be greater than or equal to 1, not 0",
        "kv_heads: SEA114: kv_heads 5 do not divide attention_heads 33",
        "attention_heads: SEA114: hidden_size 4,096 / attention_heads 33 is not a valid head_dim: even, at most 1,024",
        "experts: SEA114: experts without experts_per_token",
    ]


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ("architecture: a/b", "architecture and shape exclude each other"),
        ("config_file: chat.yaml", "config_file and shape exclude each other"),
    ],
)
def test_the_architecture_is_given_once(
    others: str, message: str, write: Write, environments: Path, endpoint_text: str
) -> None:
    text = with_shape(endpoint_text, LLAMA_2_7B).replace("  shape:", f"  {others}\n  shape:")
    assert problems_of(text, write, environments) == [
        f"endpoints/chat.yaml:5: model.shape: SEA108: {message}\n  hint: keep the one that describes the model"
    ]


def test_an_architecture_excludes_a_file(write: Write, environments: Path, endpoint_text: str) -> None:
    text = endpoint_text.replace("org/model", "org/model\n  architecture: a/b\n  config_file: chat.yaml")
    assert problems_of(text, write, environments) == [
        "endpoints/chat.yaml:5: model.config_file: SEA108: architecture and config_file exclude each other\n"
        "  hint: keep the one that describes the model"
    ]


@pytest.mark.parametrize("model", [model for model in MODELS.rows if not model.is_mla], ids=lambda model: model.id)
def test_every_model_that_a_shape_can_describe_is_within_the_bounds(model: Architecture) -> None:
    bounds = parameter_bounds(
        {
            "layers": model.layers,
            "hidden_size": model.hidden_size,
            "attention_heads": model.attention_heads,
            "kv_heads": model.kv_heads,
            "head_dim": model.head_dim,
            "vocab": model.vocab,
            **({"experts": model.experts} if model.experts else {}),
        }
    )

    assert bounds is not None
    assert bounds[0] <= model.params_total <= bounds[1]


def test_every_number_has_a_hint() -> None:
    assert set(SHAPE_HINTS) == set(ModelShape.model_fields) - {"dtype", "tied_embeddings", "parallel_attention"}


@given(st.dictionaries(st.sampled_from(sorted(ModelShape.model_fields)), st.integers() | st.none() | st.booleans()))
def test_any_numbers_are_compared_without_failing(shape: dict[str, int | None]) -> None:
    document = Document("any.yaml", {"model": {"shape": dict(shape)}}, {}, {})

    rules = {problem.rule for problem in contradictions(document) if problem.place.field != "model"}
    assert rules <= {"SEA114", "SEA115"}
