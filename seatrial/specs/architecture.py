"""The architecture of a spec's model: from its file, its shape, a catalog id or the hub id."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from seatrial.specs.spec_files import gives_embeddings
from seatrial_base.catalog.architecture import Architecture, from_config_json
from seatrial_base.catalog.config_json import INSTEAD_OF_TEXT
from seatrial_base.catalog.engine_limits import stored
from seatrial_base.catalog.models import (
    given_instead_of_text,
    nearest_models,
    resolve_model,
    split_precision,
    unsupported_format,
)
from seatrial_base.errors import PlanError
from seatrial_base.field_facts import made_of

if TYPE_CHECKING:
    from seatrial.specs.endpoint import ModelShape
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.findings import Finding

_WAYS = (
    "give model.architecture, a catalog id of the same shape (seatrial models list); or model.config_file, the "
    "config.json of the weights; or model.shape with layers, hidden_size, attention_heads, kv_heads, vocab, "
    "max_context and params_total"
)


_STRETCHED = ("yarn", "linear", "dynamic")  # kinds by whose factor vLLM multiplies the context (config/model.py)


def read_architecture(loaded: LoadedSpec) -> Architecture:
    """Return the model's architecture: from the given file, shape or catalog id, or from the hub id.

    Its context is that of the positions as `serving.overrides.rope_scaling` stretches them.

    Raises:
        PlanError: SEA201 when it is unknown, SEA209 when it can't be planned, SEA255 when it gives no text, SEA211 when
            a number of the file is one that no model has.
    """
    architecture, scaling = _published(loaded), loaded.endpoint.serving.overrides.rope_scaling
    trained = None if scaling is None else scaling.original_max_position_embeddings
    if scaling is None or scaling.kind not in _STRETCHED or scaling.factor is None:
        return architecture
    if trained is None and scaling.kind == "yarn":
        return architecture  # the engines take YaRN's context from the trained length alone
    stretched = int((trained or architecture.max_context) * scaling.factor)
    return replace(architecture, max_context=max(architecture.max_context, stretched))


def _published(loaded: LoadedSpec) -> Architecture:
    model = loaded.endpoint.model
    for part, named in (("hub_id", model.hub_id), ("architecture", model.architecture)):
        if named is not None and (kind := given_instead_of_text(named)) is not None:
            message = f"{named} generates no text: it gives {kind}"
            raise PlanError([loaded.problem(("model", part), "SEA255", message, INSTEAD_OF_TEXT)])
    if model.config_file is not None:
        # The architecture of a `config.json`, if the weights next to it generate text.
        config_file = loaded.path.parent / model.config_file
        if gives_embeddings(config_file.parent):
            message = "the folder is one of sentence-transformers (modules.json), whose models give embeddings"
            raise PlanError.of("SEA255", message, hint=INSTEAD_OF_TEXT, where=config_file.as_posix())
        return from_config_json(config_file)
    if model.shape is not None:
        return _from_shape(loaded, model.shape)
    name, field = model.hub_id, ("model", "hub_id")
    if model.architecture is not None:
        name, field = model.architecture, ("model", "architecture")
    if name is None:
        message = "the architecture can't be read from the weights' location"
        raise PlanError([loaded.problem(("model",), "SEA201", message, _WAYS)])
    known = resolve_model(name)
    if known is None:
        raise PlanError([_unknown(loaded, name, field)])
    architecture = known[0]
    if model.architecture is None or model.hub_id is None:
        return architecture
    return stored(architecture, model.hub_id, _named_quantization(loaded) or known[1])


def _unknown(loaded: LoadedSpec, name: str, field: tuple[str, ...]) -> Finding:
    weights = unsupported_format(name)
    if weights is not None:
        hint = "choose a repository with 16-bit, FP8, AWQ, GPTQ, MXFP4 or NVFP4 weights"
        return loaded.problem(field, "SEA209", f"{name} has {weights} weights, which are not supported", hint)
    near = nearest_models(name)
    known = f"similar in the catalog: {', '.join(near)}; " if near else ""
    return loaded.problem(field, "SEA201", f"the architecture of {name} is unknown", f"{known}{_WAYS}")


def _named_quantization(loaded: LoadedSpec) -> str | None:
    return split_precision(loaded.endpoint.model.hub_id or "")[1]


def _from_shape(loaded: LoadedSpec, shape: ModelShape) -> Architecture:
    """Return the architecture of a shape whose numbers the spec's rules have checked."""
    model = loaded.endpoint.model
    return made_of(
        Architecture,
        shape,
        id=model.hub_id or model.jumpstart_id or "the model",
        family="inline",
        kv_heads=shape.kv_heads or shape.attention_heads,
        head_dim=shape.head_dim or shape.hidden_size // shape.attention_heads,
        params_active=shape.params_active or shape.params_total,
        checkpoint_quantization=_named_quantization(loaded),
        source=f"model.shape of {loaded.path.as_posix()}",
        date=None,
    )
