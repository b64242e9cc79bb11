"""Contradictions in an endpoint's spec: relations of its fields, and of what is computed from them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from seatrial.specs import hosting, scaling
from seatrial.specs.endpoint import MOST_HEAD_DIM, EndpointSpec, Percentiles, WorkloadSpec
from seatrial.specs.recipe import recipe_problems, speculation_problems
from seatrial.specs.relations import (
    UnknownValueError,
    at_most,
    broken_rules,
    excludes,
    is_above,
    is_left_out,
    is_other,
    is_set,
    is_value,
    needs,
)
from seatrial.specs.spec_files import RELATIVE, kind_in_repository, repository_root, stays_in, why_away
from seatrial_base.bounds import wrong_stddev
from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.engine_options import refusing_range
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.catalog.models import licence_of
from seatrial_base.field_facts import facts_of
from seatrial_base.tags import is_reserved_name
from seatrial_load.documents.request import CONVERSATIONS, Workload
from seatrial_load.documents.request_checks import wrong_deviations
from seatrial_load.measure.lengths import normal_lengths

if TYPE_CHECKING:
    from collections.abc import Iterator

    from seatrial.specs.relations import Fields, Rule
    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding


_BILLION = 10**9
# Parameters of one MLP or expert in units of hidden_size². Dense: 8 (Llama, GPT-NeoX) to 24 (Gemma); experts: from 0.9
# (DeepSeek-V3) to 10.5 (Mixtral). The bounds lie within, and _SLACK around them.
_DENSE_MLP, _WIDEST_MLP, _NARROWEST_EXPERT = 8, 12, 1
_SLACK = 3
MOST_HUB_NAME = 96
_DEVIATIONS = ("input_tokens_stddev", "output_tokens_stddev")
_CONVERSATION = tuple(
    name
    for name, facts in facts_of(Workload).items()
    if facts.of == CONVERSATIONS and name in WorkloadSpec.model_fields
)
_LONGEST = (("workload", "max_model_len"), ("serving", "overrides", "max_model_len"))
_FILES = (
    ("workload", "dataset"),
    ("model", "config_file"),
    ("model", "jumpstart_metadata"),
    ("slo", "quality", "evaluation_set"),
)
_MAY_BE_FOLDER = ("model", "jumpstart_metadata")


def contradictions(document: Document) -> Iterator[Finding]:
    """Yield every contradiction and missing file of an endpoint's document."""
    yield from broken_rules(RULES, document, EndpointSpec)


def _reserved_names(fields: Fields) -> Iterator[Finding]:
    """Yield names that would give a component the form of a candidate's name (`seatrial_base.tags`)."""
    adapters = fields.written("serving.adapters")
    names: list[tuple[FieldPath, Yaml]] = [(("name",), fields.written("name"))]
    if isinstance(adapters, list):
        names += [
            (("serving", "adapters", index, "name"), adapter.get("name"))
            for index, adapter in enumerate(adapters)
            if isinstance(adapter, dict)
        ]
    for place, name in names:
        if isinstance(name, str) and is_reserved_name(name):
            message = f"{name} ends as the candidates of trials do: candidate- and eight digits of 0 to f"
            yield fields.document.problem(place, "SEA140", message, "choose another name")


def _extra_numbers(fields: Fields) -> Iterator[Finding]:
    """Yield each number among the options of an engine that no engine with an option of this name takes."""
    extra = fields.written("serving.overrides.extra")
    for name, value in extra.items() if isinstance(extra, dict) else ():
        if refusing := refusing_range(name, value):
            path = ("serving", "overrides", "extra", name)
            message = f"{value} is out of range: no engine starts with it"
            yield fields.document.problem(path, "SEA318", message, f"valid: {refusing.shown}")


def _sources(fields: Fields) -> Iterator[Finding]:
    """Yield a model without weights or with two of them, and a workload without traffic."""
    names = ("hub_id", "s3_uri", "jumpstart_id", "model_package_arn")
    given = [name for name in names if fields.written(f"model.{name}") is not None]
    if isinstance(fields.written("model"), dict) and not given:
        hint = "give hub_id, s3_uri, jumpstart_id or model_package_arn"
        yield fields.problem("model", "SEA106", "the model has no source", hint)
    # Of both pairs the first mounts the weights that the second only describes.
    if len(given) > 1 and given not in (["s3_uri", "jumpstart_id"], ["s3_uri", "model_package_arn"]):
        yield _exclusive(fields, given, "keep one of them")
    traffic = [fields.written(f"workload.{name}") for name in ("concurrency", "requests_per_second")]
    if isinstance(fields.written("workload"), dict) and traffic == [None, None]:
        hint = "give concurrency or requests_per_second"
        yield fields.problem("workload", "SEA106", "the workload has no traffic", hint)


def _architecture(fields: Fields) -> Iterator[Finding]:
    names = ("architecture", "config_file", "shape")
    given = [name for name in names if fields.written(f"model.{name}") is not None]
    if len(given) > 1:
        yield _exclusive(fields, given, "keep the one that describes the model")


def _exclusive(fields: Fields, given: list[str], hint: str) -> Finding:
    return fields.problem(f"model.{given[1]}", "SEA108", f"{' and '.join(given)} exclude each other", hint)


def _hub_id(fields: Fields) -> Iterator[Finding]:
    """Yield what the hub refuses of an id's name, and no pattern says."""
    hub_id = fields.written("model.hub_id")
    name = hub_id.rpartition("/")[2] if isinstance(hub_id, str) else ""
    if len(name) > MOST_HUB_NAME:
        message = f"the model's name has {len(name)} characters; the hub allows {MOST_HUB_NAME}"
        yield fields.problem("model.hub_id", "SEA107", message, "as in meta-llama/Llama-2-7b-chat-hf")
    if name.endswith(".git"):
        yield fields.problem("model.hub_id", "SEA107", "hub names don't end in .git", "leave it out")


def _licence(fields: Fields) -> Iterator[Finding]:
    model_id, uri = fields.written("model.jumpstart_id"), fields.written("model.s3_uri")
    gated = isinstance(uri, str) and uri.startswith(jumpstart.GATED)
    if fields.written("model.accept_eula") is True or (model_id is None and not gated):
        return
    known = find_jumpstart_model(str(model_id))
    url = known.eula_url(jumpstart.HOME) if known else None
    message = f"the licence of {model_id or uri} has not been accepted"
    hint = f"read it{f' ({url})' if url else ''}, then write `accept_eula: true`"
    yield fields.problem("model", "SEA112", message, hint)


def _declared_licence(fields: Fields) -> Iterator[Finding]:
    """Yield a licence that is declared for a model of which the catalog knows another."""
    declared = fields.written("model.licence")
    for field in ("hub_id", "jumpstart_id") if isinstance(declared, str) else ():
        name = fields.written(f"model.{field}")
        known = licence_of(name) if isinstance(name, str) else None
        if known not in (None, declared):
            message = f"licence is {declared}, but {name} has {known}"
            yield fields.problem("model.licence", "SEA108", message, "leave it out: the catalog knows it")


_SHAPE = "model.shape"


def _heads(fields: Fields) -> Iterator[Finding]:
    heads, kv_heads, hidden = (_number(fields, name) for name in ("attention_heads", "kv_heads", "hidden_size"))
    if heads and kv_heads and heads % kv_heads:
        message = f"kv_heads {kv_heads:,} do not divide attention_heads {heads:,}"
        yield fields.problem(f"{_SHAPE}.kv_heads", "SEA114", message, "take both from the model's config.json")
    if heads and hidden and fields.written(f"{_SHAPE}.head_dim") is None:
        head_dim, rest = divmod(hidden, heads)
        if rest or head_dim % 2 or head_dim > MOST_HEAD_DIM:
            message = (
                f"hidden_size {hidden:,} / attention_heads {heads:,} is not a valid head_dim: even, at most "
                f"{MOST_HEAD_DIM:,}"
            )
            hint = "give head_dim, as the model's config.json does"
            yield fields.problem(f"{_SHAPE}.attention_heads", "SEA114", message, hint)


def _number(fields: Fields, name: str) -> int | None:
    """Return a number of the shape; `None` where it is not given or did not validate."""
    try:
        value: int | None = fields.value(f"{_SHAPE}.{name}")
    except UnknownValueError:
        return None
    return value


def _active(fields: Fields) -> Iterator[Finding]:
    total, active = fields.value(f"{_SHAPE}.params_total"), fields.value(f"{_SHAPE}.params_active")
    if None not in (total, active) and active < total and fields.written(f"{_SHAPE}.experts") is None:
        message = f"params_active {active:,} is below params_total {total:,}, but the model has no experts"
        hint = "give experts and experts_per_token, or leave params_active out"
        yield fields.problem(f"{_SHAPE}.params_active", "SEA114", message, hint)


def _size(fields: Fields) -> Iterator[Finding]:
    names = ("layers", "hidden_size", "attention_heads", "vocab", "head_dim", "kv_heads", "experts")
    counts = {name: value for name in names if (value := _number(fields, name)) is not None}
    total, bounds = _number(fields, "params_total"), parameter_bounds(counts)
    if total is None or bounds is None or bounds[0] <= total <= bounds[1]:
        return
    low, high = (f"{bound / _BILLION:,.2g}" if bound < _BILLION else f"{bound / _BILLION:,.0f}" for bound in bounds)
    layers, hidden = counts["layers"], counts["hidden_size"]
    message = (
        f"params_total {total:,} does not match {layers:,} layers of width {hidden:,}, which have {low} to {high} "
        "billion"
    )
    hint = "check params_total, layers and hidden_size against the model card"
    yield fields.problem(f"{_SHAPE}.params_total", "SEA115", message, hint)


def parameter_bounds(counts: dict[str, int]) -> tuple[int, int] | None:
    """Return the fewest and most parameters that a shape can have, wide enough for every model of the catalog.

    Embeddings, attention and an MLP of 8 to 12 × hidden_size² (an expert from 1 ×), a third of it to three times of it.
    `None` when a number is missing.
    """
    names = ("layers", "hidden_size", "attention_heads", "vocab")
    if not all(name in counts for name in names):
        return None
    layers, hidden, heads, vocab = (counts[name] for name in names)
    head_dim = counts.get("head_dim", hidden // heads)
    attention = 2 * hidden * head_dim * (heads + counts.get("kv_heads", heads))
    experts = counts.get("experts")
    narrow = _NARROWEST_EXPERT * experts if experts else _DENSE_MLP
    wide = _WIDEST_MLP * (experts or 1)
    fewest = vocab * hidden + layers * (attention + narrow * hidden * hidden)
    most = 2 * vocab * hidden + layers * (attention + wide * hidden * hidden)
    return fewest // _SLACK, most * _SLACK


def _deviations(fields: Fields) -> Iterator[Finding]:
    hint = "reduce it, or give a dataset: its lengths need no such distribution"
    yield from _too_wide(fields, _DEVIATIONS, hint)


def _spread_of_turns(fields: Fields) -> Iterator[Finding]:
    if fields.written("workload.dataset") is None and fields.value("workload.turns") > 1:
        yield from _too_wide(fields, _CONVERSATION, "reduce it, or give a dataset with turns")


def _too_wide(fields: Fields, names: tuple[str, ...], hint: str) -> Iterator[Finding]:
    """Yield standard deviations that no distribution of such a mean has."""
    workload = fields.written("workload")
    for name, wrong in wrong_deviations(workload) if isinstance(workload, dict) else ():
        if name in names:
            yield fields.problem(f"workload.{name}", "SEA108", wrong, hint)


def _context(fields: Fields) -> Iterator[Finding]:
    document = fields.document
    lengths = [document.value("workload", name) for name in ("input_tokens", "output_tokens")]
    given = [(path, value) for path in _LONGEST if isinstance(value := document.value(*path), int)]
    if len({value for _, value in given}) > 1:
        message = f"workload.max_model_len is {given[0][1]}, but serving.overrides.max_model_len is {given[1][1]}"
        yield document.problem(_LONGEST[1], "SEA120", message, "keep workload.max_model_len only")
    numbers = [value for value in lengths if isinstance(value, int)]
    if len(numbers) < len(lengths):
        return
    needed = _longest_request(document, *numbers)
    for path, longest in given:
        if needed > longest:
            what = (
                f"{numbers[0]} + {numbers[1]} tokens" if needed == sum(numbers) else f"longest request, {needed} tokens"
            )
            message = f"max_model_len {longest} is below the workload's {what}"
            yield document.problem(path, "SEA108", message, f"set it to at least {needed}")


def _longest_request(document: Document, prompt: int, answer: int) -> int:
    """Return the tokens of the longest request of a distribution; of one that is none, those of the mean."""
    deviations = [document.value("workload", name) for name in _DEVIATIONS]
    known = [value if isinstance(value, int | float) else 0.0 for value in deviations]
    # What no distribution has is reported of its own; here the means alone are compared.
    if prompt < 1 or answer < 1 or any(map(wrong_stddev, (prompt, answer), known)):
        return prompt + answer
    lengths = normal_lengths(
        input_tokens=prompt, output_tokens=answer, input_tokens_stddev=known[0], output_tokens_stddev=known[1]
    )
    return lengths.longest


def _files(fields: Fields) -> Iterator[Finding]:
    """Yield each file that is not there, or that is none of the repository: then nothing of it is read."""
    document = fields.document
    for field in _FILES:
        name = document.value(*field)
        if not isinstance(name, str) or "\0" in name:
            continue  # SEA118 tells of the second
        spec = Path(document.path)
        path = spec.parent / name
        if because := why_away(spec, name) or _linked_away(spec, path):
            yield document.problem(field, "SEA138", because, f"copy it into the repository; {RELATIVE}")
        elif kind_in_repository(path) not in (("file", "folder") if field == _MAY_BE_FOLDER else ("file",)):
            yield document.problem(field, "SEA101", f"the file {name} does not exist", RELATIVE)


def _linked_away(spec: Path, folder: Path) -> str:
    """Return which file of a folder is a link out of the repository; empty for none, and for what is no folder."""
    files = folder.rglob("*.json") if kind_in_repository(folder) == "folder" else ()
    away = next((file for file in files if not stays_in(file, repository_root(spec))), None)
    return "" if away is None else f"{away.name} points outside of the repository"


_OPEN = is_value("workload.arrivals", "poisson", "gamma", "constant", "recorded")
_TURNS = is_above("workload.turns", 1)
_NO_DATASET = (is_left_out("workload.dataset"),)
RULES: tuple[Rule, ...] = (
    _reserved_names,
    _extra_numbers,
    _sources,
    needs(
        "SEA108",
        "model.revision",
        "model.hub_id",
        message="revision needs a hub_id",
        hint="remove revision, or give hub_id",
    ),
    needs(
        "SEA108",
        "model.jumpstart_metadata",
        "model.jumpstart_id",
        message="jumpstart_metadata needs a jumpstart_id",
        hint="remove jumpstart_metadata, or give jumpstart_id",
    ),
    needs(
        "SEA148",
        is_value("serving.overload", "refuse"),
        *(is_set(f"slo.ttft_ms.{name}") for name in Percentiles.model_fields),
        message="overload: refuse needs a bound on the time to first token",
        hint="bound slo.ttft_ms.p95, or write overload: queue",
    ),
    excludes(
        "SEA148",
        is_value("serving.overload", "refuse"),
        "hosting.asynchronous",
        message="requests of an asynchronous endpoint wait in SageMaker's queue, which refuses none",
        hint="remove overload: refuse",
        place="serving.overload",
    ),
    _hub_id,
    _licence,
    _declared_licence,
    _architecture,
    _heads,
    *(
        needs(
            "SEA114",
            f"{_SHAPE}.{name}",
            f"{_SHAPE}.{other}",
            message=f"{name} without {other}",
            hint="give both, or neither for a dense model",
        )
        for name, other in (("experts", "experts_per_token"), ("experts_per_token", "experts"))
    ),
    *(
        at_most(
            "SEA114",
            f"{_SHAPE}.{name}",
            f"{_SHAPE}.{bound}",
            message=f"{name} {{0:,}} exceeds {bound} {{1:,}}",
            hint="at most {1:,}",
        )
        for name, bound in (("experts_per_token", "experts"), ("params_active", "params_total"))
    ),
    _active,
    needs(
        "SEA114",
        is_above(f"{_SHAPE}.sliding_layers", 0),
        f"{_SHAPE}.sliding_window",
        message="sliding_layers without sliding_window",
        hint="give the window in tokens, or leave sliding_layers out",
    ),
    at_most(
        "SEA114",
        f"{_SHAPE}.sliding_layers",
        f"{_SHAPE}.layers",
        message="sliding_layers {0:,} exceeds layers {1:,}",
        hint="at most {1:,}",
    ),
    _size,
    excludes(
        "SEA108",
        "workload.concurrency",
        "workload.requests_per_second",
        hint="keep one; the plan computes the other by Little's law",
    ),
    needs(
        "SEA155",
        "objective.headroom",
        "workload.requests_per_second",
        hint="give a rate in place of concurrency: headroom is the chance that it is carried; or leave it out",
    ),
    _deviations,
    *(
        excludes("SEA108", "workload.dataset", f"workload.{name}", hint="leave it out: the file has the lengths")
        for name in _DEVIATIONS
    ),
    needs(
        "SEA108",
        "workload.arrival_smoothness",
        is_value("workload.arrivals", "gamma"),
        message="arrival_smoothness needs gamma arrivals",
        hint="write arrivals: gamma, or leave it out",
    ),
    needs(
        "SEA108",
        is_value("workload.arrivals", "recorded"),
        "workload.dataset",
        message="recorded arrivals need a dataset",
        hint="give the file whose lines have a timestamp, or write arrivals: poisson",
    ),
    needs(
        "SEA108",
        _OPEN,
        "workload.requests_per_second",
        message="{0} arrivals need a rate",
        shown=("workload.arrivals",),
        hint="give requests_per_second in place of concurrency",
    ),
    *(
        excludes(
            "SEA108",
            _OPEN,
            field,
            message=f"{name} is of a closed loop, but workload.arrivals is {{0}}",
            shown=("workload.arrivals",),
            hint="leave it out: the levels of an open loop are rates",
            place=f"trial.{name}",
        )
        for name, field in (
            ("search", is_other("trial.search", "sweep")),
            ("goal", "trial.goal"),
            ("start", is_other("trial.start", "spread")),
            ("concurrency_levels", "trial.concurrency_levels"),
        )
    ),
    *(
        excludes("SEA108", "workload.dataset", f"workload.{name}", hint="leave it out: the file's `turns` say it")
        for name in _CONVERSATION
    ),
    *(
        needs(
            "SEA108",
            f"workload.{name}",
            "workload.dataset",
            _TURNS,
            message=f"{name} needs turns above 1",
            hint="give the mean of turns",
        )
        for name in _CONVERSATION
        if name != "turns"
    ),
    _spread_of_turns,
    excludes(
        "SEA108",
        _TURNS,
        "workload.prefix_hit_rate",
        when=_NO_DATASET,
        hint="leave it out: it follows from turns",
    ),
    excludes(
        "SEA108",
        _TURNS,
        is_other("workload.arrivals", "closed"),
        when=_NO_DATASET,
        message="turns need a closed loop, but arrivals are {0}",
        shown=("workload.arrivals",),
        hint="write arrivals: closed: a turn follows the answer before it",
    ),
    at_most(
        "SEA108",
        "workload.shared_prefix_tokens",
        "workload.input_tokens",
        strictly=True,
        message="shared_prefix_tokens {0} is not below the prompt length of {1} tokens",
        hint="set it below {1}",
    ),
    needs(
        "SEA108",
        "workload.prefix_groups",
        is_set("workload.shared_prefix_tokens"),
        hint="give it, or leave prefix_groups out",
    ),
    *(
        excludes(
            "SEA108",
            is_set("workload.shared_prefix_tokens"),
            path,
            message=f"workload.shared_prefix_tokens and {path} exclude each other",
            hint="leave it out: it follows from shared_prefix_tokens",
        )
        for path in ("workload.prefix_hit_rate", "trial.shared_prefix_tokens", "trial.prefix_groups")
    ),
    *scaling.RULES,
    at_most(
        "SEA108",
        "trial.requests_per_concurrency",
        "trial.max_requests_per_concurrency",
        place="trial.max_requests_per_concurrency",
        hint="set it to at least {0}",
    ),
    at_most(
        "SEA108",
        "trial.shared_prefix_tokens",
        "workload.input_tokens",
        strictly=True,
        message="shared_prefix_tokens {0} is not below the prompt length of {1} tokens",
        hint="set it below {1}",
    ),
    _context,
    lambda fields: speculation_problems(fields.document),
    lambda fields: recipe_problems(fields.document),
    *hosting.RULES,
    _files,
)
