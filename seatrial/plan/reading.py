"""Reads the spec's side of the plan: the model's architecture, the allowed instance types, the demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.catalog import instances, models
from seatrial.catalog.architecture import from_config_json
from seatrial.catalog.table import nearest
from seatrial.errors import PlanError
from seatrial.plan.parallelism import possible_degrees, shards_evenly

if TYPE_CHECKING:
    from seatrial.catalog.architecture import Architecture
    from seatrial.catalog.instances import Instance
    from seatrial.errors import Problem
    from seatrial.spec.load import LoadedSpec

_WIDEST_INSTANCE = 16  # accelerators


def read_architecture(loaded: LoadedSpec) -> Architecture:
    """Return the model's architecture: from the given file, the given catalog id, or the hub id.

    Raises:
        PlanError: SEA201 when it is unknown, SEA209 when it can't be planned.
    """
    model = loaded.endpoint.model
    if model.config_file is not None:
        return from_config_json(loaded.path.parent / model.config_file)
    name, field = _named(loaded)
    if name is None:
        message = "the architecture can't be read from where the weights lie"
        hint = "give model.architecture, a catalog id of the same shape, or model.config_file"
        raise PlanError([loaded.problem(("model",), "SEA201", message, hint)])
    found = models.find(name)
    if found is None:
        near = models.nearest(name)
        known = f"near in the catalog: {', '.join(near)}; " if near else ""
        hint = f"{known}give model.architecture, a catalog id of the same shape, or model.config_file"
        raise PlanError([loaded.problem(field, "SEA201", f"the architecture of {name} is unknown", hint)])
    if found.is_mla:
        message = f"{found.id} has multi-head latent attention, for which the KV formulas do not hold"
        raise PlanError([loaded.problem(field, "SEA209", message, "choose a model without it")])
    return found


def _named(loaded: LoadedSpec) -> tuple[str | None, tuple[str, ...]]:
    model = loaded.endpoint.model
    if model.architecture is not None:
        return model.architecture, ("model", "architecture")
    return model.hub_id, ("model", "hub_id")


def allowed_instances(loaded: LoadedSpec) -> tuple[tuple[Instance, ...], tuple[str, ...]]:
    """Return the instance types that spec and environment both allow, and a warning for each the catalog lacks.

    Nothing given allows every type of the catalog that has NVIDIA GPUs.

    Raises:
        PlanError: SEA110 when the catalog knows none of them.
    """
    asked, rails = loaded.endpoint.serving.instance_types, loaded.environment.guard_rails.instance_types
    if asked is None and rails is None:
        return tuple(instance for instance in instances.every() if instance.link != "neuron"), ()
    names = [name for name in (asked or rails or ()) if rails is None or name in rails]
    found = {name: instances.find(name) for name in names}
    unknown = [name for name, instance in found.items() if instance is None]
    known = tuple(instance for instance in found.values() if instance is not None)
    if not known:
        near = {name: None for missing in unknown for name in nearest(missing, _every_name())}
        message = f"the catalog has none of {', '.join(unknown)}"
        hint = f"near in the catalog: {', '.join(near) or 'nothing'}"
        raise PlanError([loaded.problem(("serving", "instance_types"), "SEA110", message, hint)])
    return known, tuple(
        f"SEA110: {name} is not in the catalog: it can't be planned without its accelerator's numbers, so it is left "
        "out."
        for name in unknown
    )


def token_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that a hub token is readable once it is deployed, and how to do without."""
    model = loaded.endpoint.model
    if model.hub_token_secret is None or model.s3_uri is not None:
        return ()
    warning = (
        "The hub token is resolved into the model's environment, where everyone who may call sagemaker:DescribeModel "
        "reads it; weights staged to S3 (model.s3_uri) need no token."
    )
    return (warning,)


def _every_name() -> list[str]:
    return [instance.instance_type for instance in instances.every()]


def check_model_fields(loaded: LoadedSpec, architecture: Architecture) -> None:
    """Check what the spec asks of the model against its architecture.

    Raises:
        PlanError: SEA208 when the context is too short, SEA204 when the degree does not divide the heads.
    """
    problems = [*_context_problems(loaded, architecture), *_degree_problems(loaded, architecture)]
    if problems:
        raise PlanError(problems)


def _context_problems(loaded: LoadedSpec, architecture: Architecture) -> list[Problem]:
    workload, fixed = loaded.endpoint.workload, loaded.endpoint.serving.overrides.max_model_len
    tokens, context = workload.input_tokens + workload.output_tokens, architecture.max_context
    name = architecture.id
    if tokens > context:
        message = f"the workload's {tokens:,} tokens exceed the {context:,} of {name}'s context"
        hint = f"shorten input_tokens or output_tokens by {tokens - context:,}, or choose a longer context"
        return [loaded.problem(("workload", "input_tokens"), "SEA208", message, hint)]
    if fixed is not None and fixed > context:
        message = f"max_model_len {fixed:,} exceeds the {context:,} of {name}'s context"
        field = ("serving", "overrides", "max_model_len")
        return [loaded.problem(field, "SEA208", message, f"set it to at most {context:,}")]
    return []


def _degree_problems(loaded: LoadedSpec, architecture: Architecture) -> list[Problem]:
    degree = loaded.endpoint.serving.overrides.tensor_parallel_degree
    if degree is None or shards_evenly(architecture, degree):
        return []
    works = ", ".join(map(str, possible_degrees(architecture, _WIDEST_INSTANCE)))
    heads = f"{architecture.attention_heads} attention heads and {architecture.kv_heads} KV heads"
    message = f"tensor_parallel_degree {degree} does not divide {heads} of {architecture.id}"
    field = ("serving", "overrides", "tensor_parallel_degree")
    return [loaded.problem(field, "SEA204", message, f"these work: {works}")]
