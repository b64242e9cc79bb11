"""Fields that exclude or need one another, looked up in the raw document so that they show beside other errors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import ValidationError

from seatrial.specs.draft_rules import speculation_problems
from seatrial.specs.endpoint import WorkloadSpec
from seatrial.specs.hosting_rules import hosting_problems
from seatrial.specs.model_shape import MOST_HEAD_DIM, ModelShape
from seatrial.specs.recipe_rules import recipe_problems
from seatrial.specs.repository_files import RELATIVE, kind_in_repository, repository_root, stays_in, why_away
from seatrial.specs.scaling import scaling_problems
from seatrial_base.bounds import wrong_stddev
from seatrial_base.catalog import jumpstart
from seatrial_base.catalog.jumpstart import find_jumpstart_model
from seatrial_base.catalog.models import licence_of
from seatrial_base.field_facts import facts_of
from seatrial_base.tags import is_reserved_name
from seatrial_load.documents.request import CONVERSATIONS, Workload
from seatrial_load.documents.request_checks import wrong_deviations
from seatrial_load.measure.lengths import normal_lengths

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding


_SHAPE = ("model", "shape")
_BILLION = 10**9
# Parameters of one MLP or expert in units of hidden_size². Dense: 8 (Llama, GPT-NeoX) to 24 (Gemma); experts: from 0.9
# (DeepSeek-V3) to 10.5 (Mixtral). The bounds lie within, and _SLACK around them.
_DENSE_MLP, _WIDEST_MLP, _NARROWEST_EXPERT = 8, 12, 1
_SLACK = 3


def shape_problems(document: Document) -> Iterator[Finding]:
    """Yield what can't be true of any model: the numbers contradict one another, or the parameters the shape."""
    shape = document.value(*_SHAPE)
    if not isinstance(shape, dict):
        return
    wrong = _wrong_alone(shape)
    counts = {
        name: value
        for name, value in shape.items()
        if isinstance(value, int) and not isinstance(value, bool) and name not in wrong
    }
    for rule in (_heads, _expert_counts, _active, _sliding, _size):
        yield from rule(document, counts)


def _wrong_alone(shape: dict[str, Yaml]) -> set[int | str]:
    """Return the fields that are told by their own type or bound, and are not compared."""
    try:
        ModelShape.model_validate(shape, strict=True)
    except ValidationError as error:
        return {found["loc"][0] for found in error.errors(include_url=False)}
    return set()


def _at(document: Document, name: str, message: str, hint: str, rule: str = "SEA114") -> Finding:
    return document.problem((*_SHAPE, name), rule, message, hint)


def _heads(document: Document, counts: dict[str, int]) -> Iterator[Finding]:
    heads, kv_heads, hidden = (counts.get(name) for name in ("attention_heads", "kv_heads", "hidden_size"))
    if heads and kv_heads and heads % kv_heads:
        message = f"kv_heads {kv_heads:,} do not divide attention_heads {heads:,}"
        yield _at(document, "kv_heads", message, "take both from the model's config.json")
    if heads and hidden and document.value(*_SHAPE, "head_dim") is None:
        head_dim, rest = divmod(hidden, heads)
        if rest or head_dim % 2 or head_dim > MOST_HEAD_DIM:
            message = (
                f"hidden_size {hidden:,} / attention_heads {heads:,} is not a valid head_dim: even, at most "
                f"{MOST_HEAD_DIM:,}"
            )
            yield _at(document, "attention_heads", message, "give head_dim, as the model's config.json does")


def _expert_counts(document: Document, counts: dict[str, int]) -> Iterator[Finding]:
    pair = ("experts", "experts_per_token")
    given = [name for name in pair if document.value(*_SHAPE, name) is not None]
    if len(given) == 1:
        (missing,) = set(pair) - set(given)
        message = f"{given[0]} without {missing}"
        yield _at(document, given[0], message, "give both, or neither for a dense model")
    experts, used = counts.get("experts"), counts.get("experts_per_token")
    if experts and used and used > experts:
        message = f"experts_per_token {used:,} exceeds experts {experts:,}"
        yield _at(document, "experts_per_token", message, f"at most {experts:,}")


def _active(document: Document, counts: dict[str, int]) -> Iterator[Finding]:
    total, active = counts.get("params_total"), counts.get("params_active")
    if not total or not active:
        return
    if active > total:
        message = f"params_active {active:,} exceeds params_total {total:,}"
        yield _at(document, "params_active", message, f"at most {total:,}")
    elif active < total and document.value(*_SHAPE, "experts") is None:
        message = f"params_active {active:,} is below params_total {total:,}, but the model has no experts"
        yield _at(document, "params_active", message, "give experts and experts_per_token, or leave params_active out")


def _sliding(document: Document, counts: dict[str, int]) -> Iterator[Finding]:
    sliding, layers = counts.get("sliding_layers"), counts.get("layers")
    if sliding and document.value(*_SHAPE, "sliding_window") is None:
        message = "sliding_layers without sliding_window"
        yield _at(document, "sliding_layers", message, "give the window in tokens, or leave sliding_layers out")
    if sliding and layers and sliding > layers:
        message = f"sliding_layers {sliding:,} exceeds layers {layers:,}"
        yield _at(document, "sliding_layers", message, f"at most {layers:,}")


def _size(document: Document, counts: dict[str, int]) -> Iterator[Finding]:
    total, bounds = counts.get("params_total"), parameter_bounds(counts)
    if total is None or bounds is None or bounds[0] <= total <= bounds[1]:
        return
    low, high = (f"{bound / _BILLION:,.2g}" if bound < _BILLION else f"{bound / _BILLION:,.0f}" for bound in bounds)
    layers, hidden = counts["layers"], counts["hidden_size"]
    message = (
        f"params_total {total:,} does not match {layers:,} layers of width {hidden:,}, which have {low} to {high} "
        "billion"
    )
    hint = "check params_total, layers and hidden_size against the model card"
    yield _at(document, "params_total", message, hint, rule="SEA115")


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


MOST_HUB_NAME = 96


def contradictions(document: Document) -> Iterator[Finding]:
    """Yield every contradiction and missing file of an endpoint's document."""
    for rule in _RULES:
        yield from rule(document)


def _reserved_names(document: Document) -> Iterator[Finding]:
    """Yield names that would give a component the form of a candidate's name (`seatrial_base.tags`)."""
    adapters = document.value("serving", "adapters")
    names: list[tuple[FieldPath, Yaml]] = [(("name",), document.value("name"))]
    if isinstance(adapters, list):
        names += [
            (("serving", "adapters", index, "name"), each.get("name"))
            for index, each in enumerate(adapters)
            if isinstance(each, dict)
        ]
    for place, name in names:
        if isinstance(name, str) and is_reserved_name(name):
            message = f"{name} ends as the candidates of trials do: candidate- and eight digits of 0 to f"
            yield document.problem(place, "SEA140", message, "choose another name")


def _given(document: Document, parent: str, names: tuple[str, ...]) -> list[str]:
    return [name for name in names if document.value(parent, name) is not None]


def _model_source(document: Document) -> Iterator[Finding]:
    if not isinstance(document.value("model"), dict):
        return
    given = _given(document, "model", ("hub_id", "s3_uri", "jumpstart_id", "model_package_arn"))
    if given in (["s3_uri", "jumpstart_id"], ["s3_uri", "model_package_arn"]):
        return
    if not given:
        hint = "give hub_id, s3_uri, jumpstart_id or model_package_arn"
        yield document.problem(("model",), "SEA106", "the model has no source", hint)
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield document.problem(("model", given[1]), "SEA108", message, "keep one of them")


def _model_details(document: Document) -> Iterator[Finding]:
    revision, hub = document.value("model", "revision"), document.value("model", "hub_id")
    if revision is not None and hub is None:
        message = "revision needs a hub_id"
        yield document.problem(("model", "revision"), "SEA108", message, "remove revision, or give hub_id")
    metadata, jumpstart_id = document.value("model", "jumpstart_metadata"), document.value("model", "jumpstart_id")
    if metadata is not None and jumpstart_id is None:
        message = "jumpstart_metadata needs a jumpstart_id"
        yield document.problem(
            ("model", "jumpstart_metadata"), "SEA108", message, "remove jumpstart_metadata, or give jumpstart_id"
        )


def _hub_id(document: Document) -> Iterator[Finding]:
    """Yield what the hub refuses of an id's name, and no pattern says."""
    hub_id = document.value("model", "hub_id")
    name = hub_id.rpartition("/")[2] if isinstance(hub_id, str) else ""
    if len(name) > MOST_HUB_NAME:
        message = f"the model's name has {len(name)} characters; the hub allows {MOST_HUB_NAME}"
        yield document.problem(("model", "hub_id"), "SEA107", message, "as in meta-llama/Llama-2-7b-chat-hf")
    if name.endswith(".git"):
        yield document.problem(("model", "hub_id"), "SEA107", "hub names don't end in .git", "leave it out")


def _licence(document: Document) -> Iterator[Finding]:
    model_id, uri = document.value("model", "jumpstart_id"), document.value("model", "s3_uri")
    gated = isinstance(uri, str) and uri.startswith(jumpstart.GATED)
    if document.value("model", "accept_eula") is True or (model_id is None and not gated):
        return
    found = find_jumpstart_model(str(model_id))
    url = found.eula_url(jumpstart.HOME) if found else None
    message = f"the licence of {model_id or uri} has not been accepted"
    hint = f"read it{f' ({url})' if url else ''}, then write `accept_eula: true`"
    yield document.problem(("model",), "SEA112", message, hint)


def _declared_licence(document: Document) -> Iterator[Finding]:
    """Yield a licence that is declared for a model of which the catalog knows another."""
    declared = document.value("model", "licence")
    for field in ("hub_id", "jumpstart_id") if isinstance(declared, str) else ():
        name = document.value("model", field)
        known = licence_of(name) if isinstance(name, str) else None
        if known not in (None, declared):
            message = f"licence is {declared}, but {name} has {known}"
            yield document.problem(("model", "licence"), "SEA108", message, "leave it out: the catalog knows it")


def _architecture(document: Document) -> Iterator[Finding]:
    given = _given(document, "model", ("architecture", "config_file", "shape"))
    if len(given) > 1:
        message = f"{' and '.join(given)} exclude each other"
        yield document.problem(("model", given[1]), "SEA108", message, "keep the one that describes the model")


def _traffic(document: Document) -> Iterator[Finding]:
    if not isinstance(document.value("workload"), dict):
        return
    given = _given(document, "workload", ("concurrency", "requests_per_second"))
    if not given:
        hint = "give concurrency or requests_per_second"
        yield document.problem(("workload",), "SEA106", "the workload has no traffic", hint)
    if len(given) > 1:
        message = "concurrency and requests_per_second exclude each other"
        hint = "keep one; the plan computes the other by Little's law"
        yield document.problem(("workload", "requests_per_second"), "SEA108", message, hint)


_DEVIATIONS = ("input_tokens_stddev", "output_tokens_stddev")
_CONVERSATION = tuple(
    name
    for name, facts in facts_of(Workload).items()
    if facts.of == CONVERSATIONS and name in WorkloadSpec.model_fields
)


def _wide(document: Document, names: tuple[str, ...], hint: str) -> Iterator[Finding]:
    workload = document.value("workload")
    for name, wrong in wrong_deviations(workload) if isinstance(workload, dict) else ():
        if name in names:
            yield document.problem(("workload", name), "SEA108", wrong, hint)


def _lengths(document: Document) -> Iterator[Finding]:
    """Yield lengths that no distribution has, and what a file and a distribution say of the same."""
    yield from _wide(document, _DEVIATIONS, "reduce it, or give a dataset: its lengths need no such distribution")
    if document.value("workload", "dataset") is not None:
        for name in _given(document, "workload", _DEVIATIONS):
            message = f"dataset and {name} exclude each other"
            yield document.problem(("workload", name), "SEA108", message, "leave it out: the file has the lengths")


def _arrivals(document: Document) -> Iterator[Finding]:
    """Yield an open loop without a rate, or beside what only a closed one has."""
    arrivals, smoothness = (document.value("workload", name) for name in ("arrivals", "arrival_smoothness"))
    if smoothness is not None and arrivals != "gamma":
        message = "arrival_smoothness needs gamma arrivals"
        hint = "write arrivals: gamma, or leave it out"
        yield document.problem(("workload", "arrival_smoothness"), "SEA108", message, hint)
    if arrivals not in ("poisson", "gamma", "constant", "recorded"):
        return
    if arrivals == "recorded" and document.value("workload", "dataset") is None:
        message = "recorded arrivals need a dataset"
        hint = "give the file whose lines have a timestamp, or write arrivals: poisson"
        yield document.problem(("workload", "arrivals"), "SEA108", message, hint)
    if document.value("workload", "requests_per_second") is None:
        message = f"{arrivals} arrivals need a rate"
        hint = "give requests_per_second in place of concurrency"
        yield document.problem(("workload", "arrivals"), "SEA108", message, hint)
    for name in _given(document, "trial", ("search", "goal", "concurrency_levels")):
        if document.value("trial", name) != "sweep":
            message = f"{name} is of a closed loop, but workload.arrivals is {arrivals}"
            hint = "leave it out: the levels of an open loop are rates"
            yield document.problem(("trial", name), "SEA108", message, hint)


def _conversations(document: Document) -> Iterator[Finding]:
    """Yield turns that no distribution has, and those beside a file or an open loop."""
    turns = document.value("workload", "turns")
    asked = _given(document, "workload", _CONVERSATION)
    if document.value("workload", "dataset") is not None:
        for name in asked:
            message = f"dataset and {name} exclude each other"
            yield document.problem(("workload", name), "SEA108", message, "leave it out: the file's `turns` say it")
        return
    if not isinstance(turns, int) or turns < 2:  # noqa: PLR2004 (one turn is no conversation)
        for name in asked[1:] if turns is not None else asked:
            yield document.problem(
                ("workload", name), "SEA108", f"{name} needs turns above 1", "give the mean of turns"
            )
        return
    yield from _wide(document, _CONVERSATION, "reduce it, or give a dataset with turns")
    if document.value("workload", "prefix_hit_rate") is not None:
        message, hint = "turns and prefix_hit_rate exclude each other", "leave it out: it follows from turns"
        yield document.problem(("workload", "prefix_hit_rate"), "SEA108", message, hint)
    arrivals = document.value("workload", "arrivals")
    if arrivals is not None and arrivals != "closed":
        message = f"turns need a closed loop, but arrivals are {arrivals}"
        hint = "write arrivals: closed: a turn follows the answer before it"
        yield document.problem(("workload", "arrivals"), "SEA108", message, hint)


def _prefix(document: Document) -> Iterator[Finding]:
    """Yield a shared prefix that is told twice, or that no prompt can have."""
    shared, prompt = document.value("workload", "shared_prefix_tokens"), document.value("workload", "input_tokens")
    if isinstance(shared, int) and isinstance(prompt, int) and shared >= prompt:
        message = f"shared_prefix_tokens {shared} is not below the prompt length of {prompt} tokens"
        yield document.problem(("workload", "shared_prefix_tokens"), "SEA108", message, f"set it below {prompt}")
    if document.value("workload", "prefix_groups") is not None and not shared:
        message = "prefix_groups needs shared_prefix_tokens"
        yield document.problem(("workload", "prefix_groups"), "SEA108", message, "give it, or leave prefix_groups out")
    if not shared:
        return
    for path in (("workload", "prefix_hit_rate"), ("trial", "shared_prefix_tokens"), ("trial", "prefix_groups")):
        if document.value(*path) is not None:
            message = f"workload.shared_prefix_tokens and {'.'.join(path)} exclude each other"
            yield document.problem(path, "SEA108", message, "leave it out: it follows from shared_prefix_tokens")


def _trial(document: Document) -> Iterator[Finding]:
    least, most = (document.value("trial", f"{name}requests_per_concurrency") for name in ("", "max_"))
    if isinstance(least, int) and isinstance(most, int) and least > most:
        message = f"requests_per_concurrency {least} exceeds max_requests_per_concurrency {most}"
        path = ("trial", "max_requests_per_concurrency")
        yield document.problem(path, "SEA108", message, f"set it to at least {least}")
    prefix, prompt = document.value("trial", "shared_prefix_tokens"), document.value("workload", "input_tokens")
    if isinstance(prefix, int) and isinstance(prompt, int) and prefix >= prompt:
        message = f"shared_prefix_tokens {prefix} is not below the prompt length of {prompt} tokens"
        yield document.problem(("trial", "shared_prefix_tokens"), "SEA108", message, f"set it below {prompt}")


_LONGEST = (("workload", "max_model_len"), ("serving", "overrides", "max_model_len"))


def _context(document: Document) -> Iterator[Finding]:
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
    if prompt < 1 or answer < 1 or any(map(wrong_stddev, (prompt, answer), known)):
        return prompt + answer
    lengths = normal_lengths(
        input_tokens=prompt, output_tokens=answer, input_tokens_stddev=known[0], output_tokens_stddev=known[1]
    )
    return lengths.longest


_FILES = (
    ("workload", "dataset"),
    ("model", "config_file"),
    ("model", "jumpstart_metadata"),
    ("slo", "quality", "evaluation_set"),
)
_MAY_BE_FOLDER = ("model", "jumpstart_metadata")


def _files(document: Document) -> Iterator[Finding]:
    """Yield each file that is not there, or that is none of the repository: then nothing of it is read."""
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


_RULES: tuple[Callable[[Document], Iterator[Finding]], ...] = (
    _reserved_names,
    _model_source,
    _model_details,
    _hub_id,
    _licence,
    _declared_licence,
    _architecture,
    shape_problems,
    _traffic,
    _lengths,
    _arrivals,
    _conversations,
    _prefix,
    scaling_problems,
    _trial,
    _context,
    speculation_problems,
    recipe_problems,
    hosting_problems,
    _files,
)
