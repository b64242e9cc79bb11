"""Fields of `hosting` and adapters that exclude or need one another, looked up in the raw document."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from seatrial.specs.yaml_source import Document, FieldPath, Yaml
    from seatrial_base.findings import Finding

_HOSTING = ("hosting",)
_COMPONENTS, _SINGLE = "inference_component", "single_model"
_ONLY_COMPONENTS: tuple[FieldPath, ...] = (
    *((*_HOSTING, name) for name in ("more_models", "traffic", "router", "data_cache", "placement")),
    ("serving", "adapters"),
)
_ONLY_SINGLE: tuple[FieldPath, ...] = tuple(
    (*_HOSTING, name) for name in ("asynchronous", "data_capture", "variants", "shadow")
)


def hosting_problems(document: Document) -> Iterator[Finding]:
    """Yield every contradiction of how an endpoint is hosted."""
    if not isinstance(document.value("hosting"), dict | None):
        return
    for rule in _RULES:
        yield from rule(document)


def _kind(document: Document) -> Iterator[Finding]:
    """Yield fields of the other kind of endpoint."""
    kind = document.value("hosting", "kind") or _COMPONENTS
    if kind not in (_COMPONENTS, _SINGLE):
        return
    wrong, needed = (_ONLY_SINGLE, _SINGLE) if kind == _COMPONENTS else (_ONLY_COMPONENTS, _COMPONENTS)
    for path in wrong:
        if document.value(*map(str, path)):
            message = f"{path[-1]} needs hosting.kind {needed}"
            yield document.problem(path, "SEA125", message, f"remove it, or write `kind: {needed}` below hosting")


_NOT_IN_CLOUDFORMATION: tuple[tuple[FieldPath, str | None, str, str], ...] = (
    (
        (*_HOSTING, "routing", "strategy"),
        "kv_aware",
        "KV-aware routing is in SageMaker's API alone: CloudFormation's EndpointConfig has no KV_AWARE",
        "write `strategy: prefix_aware`, which keeps requests with the same beginning together",
    ),
    (
        (*_HOSTING, "accelerator_partition"),
        None,
        "GPU partitions (MIG) are in SageMaker's API alone: CloudFormation has no AcceleratorPartitionType",
        "remove it; a smaller instance type, or more_models on whole GPUs, is what a stack can make",
    ),
    (
        (*_HOSTING, "inference_router"),
        None,
        "inference routers are in SageMaker's API alone: CloudFormation has no such type",
        "remove it; hosting.router splits requests by a function, and the alias follows the endpoint",
    ),
)
"""Field, its value (None for any), why a stack can't have it, and what to do.

Read on 2026-11-25: botocore 1.44.8, which has all three (CreateInferenceRouter, KV_AWARE, AcceleratorPartitionType);
the resource schemas of cfn-lint and aws-cdk-lib 2.275.0, which have none. A change that CloudFormation does not know of
would be undone by its next update, so no custom resource makes them.
"""


def _not_in_cloudformation(document: Document) -> Iterator[Finding]:
    for path, asked, because, hint in _NOT_IN_CLOUDFORMATION:
        value = document.value(*map(str, path))
        if value is not None and (asked is None or value == asked):
            yield document.problem(path, "SEA139", because, hint)


def _routing(document: Document) -> Iterator[Finding]:
    strategy = document.value("hosting", "routing", "strategy")
    for name in ("prefix_length", "concurrency_threshold"):
        path = (*_HOSTING, "routing", name)
        given = document.value(*path) is not None
        if strategy == "prefix_aware" and not given:
            message = f"prefix_aware routing needs {name}"
            hint = "the length of the shared beginning, 1024 or more" if name == "prefix_length" else "16, for example"
            yield document.problem(path, "SEA126", message, f"add `{name}`: {hint}")
        if strategy != "prefix_aware" and given:
            message = f"{name} is for prefix_aware routing only"
            yield document.problem(path, "SEA126", message, "write `strategy: prefix_aware`, or remove it")


def _pools(document: Document) -> Iterator[Finding]:
    path = (*_HOSTING, "instance_pools")
    pools = _texts(document.value(*path))
    yield from _twice(document, path, pools, "SEA127", "remove the second")
    types = _texts(document.value("serving", "instance_types"))
    if pools and types and types != pools[:1]:
        message = f"serving.instance_types differs from {pools[0]}, the first of hosting.instance_pools"
        hint = "remove serving.instance_types: the plan is made for the first pool"
        yield document.problem(("serving", "instance_types"), "SEA127", message, hint)
    timeout = (*_HOSTING, "provision_timeout_s")
    if not pools and document.value(*timeout) is not None:
        yield document.problem(timeout, "SEA127", "provision_timeout_s needs instance_pools", "remove it")
    reservation = (*_HOSTING, "capacity_reservation_arn")
    if pools and document.value(*reservation) is not None:
        message = "a capacity reservation is of one instance type, instance_pools are several"
        yield document.problem(reservation, "SEA127", message, "keep one of them")


def _more_models(document: Document) -> Iterator[Finding]:
    path, own = (*_HOSTING, "more_models"), document.value("name")
    members = _texts(document.value(*path))
    yield from _twice(
        document, path, members, "SEA128", "remove the second: one component has as many copies as needed"
    )
    if own in members:
        place = (*path, members.index(str(own)))
        yield document.problem(place, "SEA128", f"{own} can't be its own guest", "remove it")


def _traffic(document: Document) -> Iterator[Finding]:
    path, own = (*_HOSTING, "traffic"), document.value("name")
    shares = document.value(*path)
    if not isinstance(shares, list):
        if document.value("hosting", "router") is True:
            yield document.problem((*_HOSTING, "router"), "SEA129", "router needs traffic", "add hosting.traffic")
        return
    names = _names(shares, "spec")
    known = [own, *_texts(document.value("hosting", "more_models"))]
    yield from _twice(document, path, names, "SEA129", "add the weights up", key="spec")
    for index, name in enumerate(names):
        if name and name not in known:
            message = f"{name} is neither this endpoint nor one of more_models"
            yield document.problem((*path, index, "spec"), "SEA129", message, f"add it to hosting.more_models: {name}")
    yield from _weightless(document, path, shares, "SEA129")


def _variants(document: Document) -> Iterator[Finding]:
    path = (*_HOSTING, "variants")
    variants = document.value(*path)
    if not isinstance(variants, list):
        return
    shadow = document.value("hosting", "shadow")
    names = [*_names(variants, "name"), *([str(shadow.get("name", "shadow"))] if isinstance(shadow, dict) else [])]
    yield from _twice(document, path, names, "SEA130", "give each variant its own name", key="name")
    own = [each for each in variants if isinstance(each, dict) and not (each.get("spec") or each.get("image"))]
    if len(own) != 1:
        message = f"{len(own)} variants have neither spec nor image, which is the endpoint's own model"
        yield document.problem(path, "SEA130", message, "let exactly one variant have neither")
    for index, each in enumerate(variants):
        if isinstance(each, dict) and each.get("spec") and each.get("image"):
            yield document.problem((*path, index, "image"), "SEA130", "spec and image exclude each other", "keep one")
    yield from _weightless(document, path, variants, "SEA130")
    if shadow is not None:
        message = "a shadow variant needs exactly one production variant"
        yield document.problem((*_HOSTING, "shadow"), "SEA130", message, "remove variants or shadow")


def _shadow(document: Document) -> Iterator[Finding]:
    shadow, path = document.value("hosting", "shadow"), (*_HOSTING, "shadow")
    if not isinstance(shadow, dict):
        return
    given = [name for name in ("spec", "image") if shadow.get(name)]
    if len(given) != 1:
        message = "the shadow variant needs a spec or an image" if not given else "spec and image exclude each other"
        yield document.problem(path, "SEA130", message, "give one of spec and image")
    if document.value("hosting", "asynchronous") is not None:
        message = "an asynchronous endpoint can't have a shadow variant"
        yield document.problem(path, "SEA130", message, "remove shadow or asynchronous")


def _openai(document: Document) -> Iterator[Finding]:
    if document.value("workload", "api") == "openai" and document.value("hosting", "asynchronous") is not None:
        message = "an asynchronous endpoint has no OpenAI path"
        yield document.problem(("workload", "api"), "SEA136", message, "remove workload.api")


def _capture(document: Document) -> Iterator[Finding]:
    path = (*_HOSTING, "data_capture", "capture")
    yield from _twice(document, path, _texts(document.value(*path)), "SEA131", "remove the second")


def _adapters(document: Document) -> Iterator[Finding]:
    path, lora = ("serving", "adapters"), document.value("serving", "overrides", "lora")
    adapters = document.value(*path)
    if not isinstance(adapters, list) or not adapters:
        return
    yield from _twice(document, path, _names(adapters, "name"), "SEA132", "give each adapter its own name", key="name")
    if not isinstance(lora, dict):
        hint = "add serving.overrides.lora with max_adapters and the highest max_rank of the adapters"
        yield document.problem(path, "SEA132", "adapters need an engine with LoRA on", hint)
        return
    for name, why in (("max_rank", "the highest rank of the adapters"), ("max_adapters", "most in one batch")):
        if lora.get(name) is None:
            message = f"adapters need serving.overrides.lora.{name}"
            yield document.problem(("serving", "overrides", "lora"), "SEA132", message, f"add `{name}`: {why}")
    in_memory = lora.get("max_cpu_adapters")
    if isinstance(in_memory, int) and not isinstance(in_memory, bool) and 0 < in_memory < len(adapters):
        field = ("serving", "overrides", "lora", "max_cpu_adapters")
        message = f"max_cpu_adapters {in_memory} is below the {len(adapters)} adapters of the endpoint"
        yield document.problem(field, "SEA132", message, f"set it to at least {len(adapters)}")


def _trial(document: Document) -> Iterator[Finding]:
    """Yield a trial of what the trial service can't try: it needs a component, and answers to requests."""
    mode = document.value("trial", "mode")
    if document.value("hosting", "kind") == _SINGLE and mode is not False and mode != "off":
        message = "the trial service tries inference components only"
        hint = 'write `mode: "off"` below trial, and try a real-time endpoint with `seatrial bench`'
        yield document.problem(("trial", "mode"), "SEA136", message, hint)


def _hub_content(document: Document) -> Iterator[Finding]:
    path = ("model", "hub_content_arn")
    sources = [document.value("model", name) for name in ("s3_uri", "jumpstart_id")]
    if document.value(*path) is not None and all(source is None for source in sources):
        message = "hub_content_arn needs weights that SageMaker mounts"
        yield document.problem(path, "SEA133", message, "give model.s3_uri or model.jumpstart_id")


def _model_package(document: Document) -> Iterator[Finding]:
    """Yield fields that say what the package says: its image and weights."""
    if document.value("model", "model_package_arn") is None:
        return
    for path in (("serving", "image"), ("serving", "code"), ("model", "hub_token_secret")):
        if document.value(*path) is not None:
            message = f"{path[-1]} and model_package_arn exclude each other: the package has image and model"
            yield document.problem(path, "SEA133", message, "remove it")


def _texts(value: Yaml) -> list[str]:
    return [each for each in value if isinstance(each, str)] if isinstance(value, list) else []


def _names(entries: list[Yaml], key: str) -> list[str]:
    """Return the name of each entry; empty where it has none."""
    return [str(each.get(key) or "") if isinstance(each, dict) else "" for each in entries]


def _twice(
    document: Document, path: FieldPath, names: list[str], rule: str, hint: str, *, key: str | None = None
) -> Iterator[Finding]:
    for name, count in Counter(names).items():
        if name and count > 1:
            second = len(names) - 1 - names[::-1].index(name)
            place = (*path, second) if key is None else (*path, second, key)
            yield document.problem(place, rule, f"{name} is listed {count} times", hint)


def _weightless(document: Document, path: FieldPath, entries: list[Yaml], rule: str) -> Iterator[Finding]:
    weights = [each.get("weight", 1) for each in entries if isinstance(each, dict)]
    if weights and all(isinstance(weight, int | float) and weight == 0 for weight in weights):
        yield document.problem(path, rule, "all weights are 0", "give at least one a weight above 0")


_RULES: tuple[Callable[[Document], Iterator[Finding]], ...] = (
    _kind,
    _routing,
    _pools,
    _more_models,
    _traffic,
    _variants,
    _shadow,
    _not_in_cloudformation,
    _openai,
    _capture,
    _adapters,
    _trial,
    _hub_content,
    _model_package,
)
