"""Warnings of a plan: where it rests on a stand-in, an old price or an over-estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.documents.plan import STAND_IN, UNPREDICTED
from seatrial.planner.predict.band import WIDER, acceptance_words, stand_in_words, unpredicted
from seatrial.planner.predict.memory import adapter_slots, weights_bytes
from seatrial.specs.prices import PURCHASES
from seatrial.specs.spec_files import indexed_bytes
from seatrial_base.catalog.engine_options import (
    PLUGINS,
    bundled_vllm,
    parser_names,
    unknown_options,
)
from seatrial_base.catalog.instances import OFFERS
from seatrial_base.catalog.models import is_gated
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.units import counted, gib

if TYPE_CHECKING:
    from seatrial.documents.prediction import MemoryFit
    from seatrial.planner.predict.copy_model import Speculation
    from seatrial.specs.endpoint import ServingOverrides, ServingSpec
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.architecture import Architecture
    from seatrial_base.catalog.engines import Engine
    from seatrial_base.catalog.instances import Instance, Purchase
    from seatrial_lint.engines.engine_options import Lora


def price_warnings(instance: Instance, loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn when price or offer in the region are unknown, or the price is not known to be that of Hosting."""
    name, where, region, warnings = instance.instance_type, instance.price_region, loaded.environment.region, []
    if not instance.is_offered:
        offer = OFFERS.get(name)
        # Those of the same part of the world first: data may be bound to it.
        places = sorted(offer.regions if offer else (), key=lambda each: (each[:3] != region[:3], each))
        some = f" It is in {', '.join(places[:3])}{' and others' if places[3:] else ''}."
        unsure = f"SEA163: {name} is not known to be offered in {region}.{some if places else ''}"
        warnings.append(f"{unsure} `seatrial preflight` asks for the account's quota there.")
    if instance.usd_per_hour is None:
        return (*warnings, f"SEA207: the price of {name} is unknown, so the cost is too.{instance.estimate} {_REFRESH}")
    if instance.price_component != "Hosting":
        what = _COMPONENTS.get(instance.price_component or "", f"of SageMaker {instance.price_component}")
        price = f"The price of {name} is {what} ({where}, {instance.price_date})"
        warnings.append(f"{price}; its Hosting price is not public. {_REFRESH}")
    if instance.has_other_price:
        bounds = {"budget": loaded.endpoint.budget, "guard_rails": loaded.rails}
        named = [f"{part}.{name}" for part, each in bounds.items() for name in _MONEY if getattr(each, name, None)]
        if named:
            kept = f"SEA164: Whether {', '.join(named)} is kept in {region} is not known"
            warnings.append(f"{kept}: {where}'s price was held against it. {_REFRESH}")
        stands_in = f"{where}'s of {instance.price_date} stands in"
        warnings.append(f"SEA162: The price of {name} in {region} is not known: {stands_in}. {_REFRESH}")
    return tuple(warnings)


def purchase_warnings(instance: Instance, purchase: Purchase) -> tuple[str, ...]:
    """Warn where the environment buys instance hours in a way whose price is unknown: the on-demand price counts."""
    if purchase == instance.purchase:
        return ()
    how = PURCHASES[purchase]
    return (f"The price of {instance.instance_type} {how} is unknown, so the price on demand counts. {_REFRESH}",)


def adapter_warnings(lora: Lora | None, memory: MemoryFit) -> tuple[str, ...]:
    """Say what LoRA adapters take of memory, and that the trial's requests are faster than those that name one."""
    if lora is None or not memory.adapters_bytes:
        return ()
    slots = counted(adapter_slots(lora), "adapter")
    host = f" Host memory holds {lora.max_cpu_adapters} of them." if lora.max_cpu_adapters else ""
    warning = (
        f"LoRA: slots for {slots} of a batch take {gib(memory.adapters_bytes)} of each accelerator; every request is "
        f"predicted as one that names an adapter, which nobody measured, and the trial's requests name none.{host}"
    )
    return (warning,)


def unpredicted_warnings(serving: ServingSpec, engine: Engine) -> tuple[str, ...]:
    """Name in one sentence what the spec asks of the engine and the prediction is made without."""
    named = unpredicted(serving, engine)
    return (f"{UNPREDICTED}{', '.join(named)}.",) if named else ()


def access_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn of a gated repository that nothing gives access to."""
    model = loaded.endpoint.model
    if loaded.environment.is_embedded:  # the laptop downloads nothing
        return ()
    if model.s3_uri or model.hub_token_secret or model.hub_id is None or not is_gated(model.hub_id):
        return ()
    warning = (
        f"SEA256: {model.hub_id} is gated: without a token the container ends with 401 while you pay for it. "
        "Accept its licence and set model.hub_token_secret, or stage the weights (seatrial stage)."
    )
    return (warning,)


_ALIKE = 0.05  # a share of the size; the heads of speculative decoding and buffers stay below it
_MONEY = ("usd_per_hour", "usd_per_million_output_tokens", "blended_usd_per_million_tokens", "job_usd")
_REFRESH = "`seatrial prices refresh` reads the current prices."
_COMPONENTS = {"unnamed": "from a list that names no SageMaker component"}


def encoder_warnings(architecture: Architecture) -> tuple[str, ...]:
    """Warn that the plan counts the text part of a multimodal model only."""
    if not architecture.is_multimodal:
        return ()
    name = architecture.id
    return (f"{name} has an encoder of images or sound; the plan counts neither its memory nor its requests.",)


def family_warnings(architecture: Architecture) -> tuple[str, ...]:
    """Warn that another family of models stands in for an unknown one."""
    words = stand_in_words(architecture)
    return (f"{STAND_IN}{words}, with {WIDER} times its band.",) if words else ()


def size_warnings(loaded: LoadedSpec, architecture: Architecture) -> tuple[str, ...]:
    """Warn where the index of the weights beside `config.json` has another size than what that file describes."""
    file = loaded.endpoint.model.config_file
    size = None if file is None else indexed_bytes((loaded.path.parent / file).parent)
    described = weights_bytes(architecture, architecture.checkpoint_quantization)
    if size is None or abs(size / described - 1) <= _ALIKE:
        return ()
    return (f"The index of the weights says {gib(size)}; by config.json they have {gib(described)}, which is planned.",)


def assumption_warnings(speculation: Speculation | None) -> tuple[str, ...]:
    """Say what speculative decoding is taken to do to the speed, and where its acceptance rate comes from."""
    if speculation is None:
        return ()
    drafted = counted(speculation.draft_tokens, "drafted token")
    if speculation.provenance == "given":
        how = f"acceptance {speculation.acceptance_rate:.0%}"
        return (f"Speculative decoding is assumed: {drafted} per step, {how}, {_draft_words(speculation)}",)
    rate = f"acceptance rate {speculation.acceptance_rate:g}: {acceptance_words(speculation)}"
    return (f"Speculative decoding: {drafted} per step, {rate}, {_draft_words(speculation)}",)


def _draft_words(speculation: Speculation) -> str:
    if speculation.draft is not None:
        size = gib(speculation.draft.weights_bytes)
        return f"draft cost computed from the draft's shape. Its {size} of weights are counted."
    share = f"draft cost {speculation.draft_cost:.0%} of a step per token."
    return f"{share} The memory of a draft model is not counted." if speculation.draft_cost else share


def option_warnings(overrides: ServingOverrides, lmi: int | None) -> tuple[str, ...]:
    """Warn of each extra option that the LMI build would drop without a word."""
    if lmi is None:
        return ()
    unknown = unknown_options(tuple(overrides.extra), lmi)
    reader = f"neither LMI {lmi} nor its vLLM {bundled_vllm(lmi)}"
    return tuple(
        f"SEA306: {reader} knows option.{name}, which is dropped silently"
        f"{f'; did you mean {near[0]}?' if near else '.'}"
        for name, near in unknown.items()
    )


def parser_warnings(overrides: ServingOverrides, engine: str) -> tuple[str, ...]:
    """Warn of each parser that the engine does not have; one that a plug-in brings is not known.

    Args:
        engine: `lmi` with vLLM, `vllm` or `sglang`; others have no parsers.
    """
    warnings = []
    for option, plugin in PLUGINS.items():
        name, known = getattr(overrides, option), parser_names(engine, option)
        if name in {None, "auto"} or known is None or name in known.names or plugin in overrides.extra:
            continue
        near = nearest_names(name, known.names)
        meant = f"; did you mean {near[0]}?" if near else f"; known on {known.date}: {', '.join(known.names)}."
        warnings.append(f"SEA378: {engine} has no {option} {name}{meant}")
    return tuple(warnings)
