"""Reads the spec's side of the plan: the allowed instance types, the demand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from seatrial.planner.decisions.batching import asked_max_model_len
from seatrial.planner.predict.open_loop import AT_RANDOM, Arrivals
from seatrial.planner.search.fitting import possible_degrees
from seatrial.specs.load import priced
from seatrial_base.catalog import neuron
from seatrial_base.catalog.architecture import Architecture, shards_evenly
from seatrial_base.catalog.instances import INSTANCES, find_instance
from seatrial_base.catalog.rows import nearest_names
from seatrial_base.errors import PlanError
from seatrial_load.measure.conversations import cached_share
from seatrial_load.measure.due_times import replay_speed

if TYPE_CHECKING:
    from seatrial.specs.load import LoadedSpec
    from seatrial_base.catalog.instances import Instance
    from seatrial_base.findings import Finding
    from seatrial_load.measure.conversations import Conversations


_WIDEST_INSTANCE = 16  # accelerators


def allowed_instances(loaded: LoadedSpec) -> tuple[tuple[Instance, ...], tuple[str, ...]]:
    """Return the instance types that spec and environment both allow, and a warning for each the catalog lacks.

    With instance pools it is the first of them. Nothing given allows every type of the catalog that has NVIDIA GPUs.
    Accelerators of AWS Neuron are counted in NeuronCores.

    Raises:
        PlanError: SEA110 when the catalog knows none of them.
    """
    endpoint, rails = loaded.endpoint, loaded.environment.guard_rails.instance_types
    asked = endpoint.serving.instance_types or (endpoint.hosting.instance_pools or ())[:1] or None
    if asked is None and rails is None:
        return tuple(priced(instance, loaded) for instance in INSTANCES.rows if not neuron.is_neuron(instance)), ()
    names = [name for name in (asked or rails or ()) if rails is None or name in rails]
    found = {name: find_instance(name) for name in names}
    unknown = [name for name, instance in found.items() if instance is None]
    known = tuple(neuron.in_cores(priced(instance, loaded)) for instance in found.values() if instance is not None)
    if not known:
        near = {name: None for missing in unknown for name in nearest_names(missing, _every_name())}
        message = f"not in the catalog: {', '.join(unknown)}"
        hint = f"similar in the catalog: {', '.join(near) or 'none'}"
        raise PlanError([loaded.problem(("serving", "instance_types"), "SEA110", message, hint)])
    return known, tuple(f"SEA110: {name} is not in the catalog and was ignored." for name in unknown)


def token_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that a hub token is readable once it is deployed, and how to do without."""
    model = loaded.endpoint.model
    if model.hub_token_secret is None or model.s3_uri is not None:
        return ()
    warning = (
        "The hub token is readable with sagemaker:DescribeModel. Weights staged to S3 (model.s3_uri) need no token."
    )
    return (warning,)


def names_neuron(loaded: LoadedSpec) -> bool:
    """Tell whether the spec names instance types with AWS Neuron, and no others that the catalog has."""
    found = [find_instance(name) for name in loaded.endpoint.serving.instance_types or ()]
    known = [instance for instance in found if instance is not None]
    return bool(known) and all(neuron.is_neuron(instance) for instance in known)


def _every_name() -> list[str]:
    return [instance.instance_type for instance in INSTANCES.rows]


def check_model_fields(loaded: LoadedSpec, architecture: Architecture) -> None:
    """Check what the spec asks of the model against its architecture.

    Raises:
        PlanError: SEA208 when the context is too short, SEA204 when the degree does not divide the heads, SEA352 for a
            backend or a pipeline that the planner can't place.
    """
    problems = [
        *_context_problems(loaded, architecture),
        *_degree_problems(loaded, architecture),
        *_unplanned(loaded),
    ]
    if problems:
        raise PlanError(problems)


def _unplanned(loaded: LoadedSpec) -> list[Finding]:
    serving, problems = loaded.endpoint.serving, []
    if serving.backend == "neuronx" and not names_neuron(loaded):
        message = "the backend neuronx needs instance types with AWS Neuron"
        hint = "name them in serving.instance_types, as ml.inf2.xlarge, or choose a backend for GPUs"
        problems.append(loaded.problem(("serving", "backend"), "SEA352", message, hint))
    if (serving.overrides.pipeline_parallel_degree or 1) > 1:
        message = "pipeline parallelism is not supported"
        path = ("serving", "overrides", "pipeline_parallel_degree")
        problems.append(loaded.problem(path, "SEA352", message, "set tensor_parallel_degree instead"))
    return problems


def batching_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that predictions are of continuous batching where the spec asks for another kind."""
    serving = loaded.endpoint.serving
    if serving.backend != "python" and serving.overrides.dynamic_batching is None:
        return ()
    warning = "Predictions assume continuous batching; dynamic batching gives far less throughput. Rely on the trial."
    return (warning,)


def arrivals_of(loaded: LoadedSpec) -> Arrivals | None:
    """Return when requests arrive at a copy, at random where the spec says a rate alone; `None` without a rate."""
    workload = loaded.endpoint.workload
    if workload.requests_per_second is None:
        return None
    match workload.arrivals:
        case "constant":
            return Arrivals("constant")
        case "gamma":
            return Arrivals("gamma", workload.arrival_smoothness)
        case "recorded":
            return Arrivals("recorded", times_s=loaded.dataset.times_s)
        case _:
            return AT_RANDOM


def arrival_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn where a trial measures no queue, though users make one; say how fast recorded requests come."""
    workload, times_s = loaded.endpoint.workload, loaded.dataset.times_s
    rate = workload.requests_per_second
    if rate is None:
        return ()
    if workload.arrivals == "closed":
        queue = "Latencies are predicted for requests at random times."
        return (f"{queue} The trial waits for answers, so it measures no queue: write workload.arrivals: poisson.",)
    if not times_s:
        return ()
    speed = replay_speed(times_s, rate)
    pace = f"{speed:.3g} times as fast as they were recorded" if speed else "all at once, as they were recorded"
    return (f"{len(times_s):,} requests of the dataset come {pace}.",)


def prefix_warnings(loaded: LoadedSpec) -> tuple[str, ...]:
    """Warn that a shared prefix is counted as computed where nothing says that the engine caches it."""
    shared, caches = loaded.endpoint.workload.shared_prefix_tokens, loaded.endpoint.serving.overrides.prefix_caching
    if loaded.conversations is not None:
        return (_repeated(loaded, loaded.conversations),)
    if not shared or caches is True:
        return ()
    off = "prefix caching is off" if caches is False else "the spec does not turn prefix caching on"
    return (
        f"Prompts share {shared:,} tokens, but {off}: they are counted as computed. Add prefix_cache to optimization.",
    )


def _repeated(loaded: LoadedSpec, conversations: Conversations) -> str:
    """Say what is assumed of the prompt tokens that were sent with earlier turns."""
    endpoint = loaded.endpoint
    share = cached_share(conversations, endpoint.workload.shared_prefix_tokens)
    repeated = f"{share:.0%} of the prompt tokens are of earlier turns"
    if endpoint.serving.overrides.prefix_caching is not True:
        return f"{repeated} and are counted as computed. Add prefix_cache to optimization."
    if endpoint.hosting.routing.strategy == "prefix_aware":
        return f"{repeated} and are counted as cached: by prefix-aware routing a conversation stays on an instance."
    return (
        f"{repeated} and are counted as cached, as on one instance. On several, write hosting.routing.strategy: "
        "prefix_aware, or turns come to instances that did not cache them."
    )


def _context_problems(loaded: LoadedSpec, architecture: Architecture) -> list[Finding]:
    workload, fixed = loaded.endpoint.workload, asked_max_model_len(loaded.endpoint)
    tokens, context = loaded.lengths.longest, architecture.max_context
    name = architecture.id
    if tokens > context:
        longest = "" if loaded.lengths.are_fixed else " for its longest request"
        message = f"the workload needs {tokens:,} tokens{longest}; the context of {name} is {context:,}"
        hint = f"shorten input_tokens or output_tokens by {tokens - context:,}, or choose a model with a longer context"
        return [loaded.problem(("workload", "input_tokens"), "SEA208", message, hint)]
    if fixed is not None and fixed > context:
        message = f"max_model_len {fixed:,} exceeds the context of {name}, {context:,} tokens"
        in_workload = workload.max_model_len is not None
        field = ("workload", "max_model_len") if in_workload else ("serving", "overrides", "max_model_len")
        return [loaded.problem(field, "SEA208", message, f"set it to at most {context:,}")]
    return []


def _degree_problems(loaded: LoadedSpec, architecture: Architecture) -> list[Finding]:
    degree = loaded.endpoint.serving.overrides.tensor_parallel_degree
    if degree is None or names_neuron(loaded) or shards_evenly(architecture, degree):
        return []
    works = ", ".join(map(str, possible_degrees(architecture, _WIDEST_INSTANCE)))
    heads = f"{architecture.attention_heads} attention heads and {architecture.kv_heads} KV heads"
    message = f"tensor_parallel_degree {degree} does not divide the {heads} of {architecture.id}"
    field = ("serving", "overrides", "tensor_parallel_degree")
    return [loaded.problem(field, "SEA204", message, f"valid: {works}")]
