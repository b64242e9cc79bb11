"""What guard rails are held against is what the constructs create: for any spec, what a rail forbids is not created."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aws_cdk import App
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.deployment.document import Deployment
from seatrial.engines.rendered import RenderedConfig
from seatrial.locks.guard_rails import ALONE, Beside, broken_rails, created_fleets
from seatrial.specs.endpoint import EndpointSpec
from seatrial.specs.environment import EnvironmentSpec
from seatrial.specs.guardrails.limits import GuardRails
from seatrial.specs.load import LoadedSpec
from seatrial.specs.prices import list_price
from seatrial.specs.yaml_source import Document
from seatrial_cdk.endpoint.planned_endpoint import own_variant, planned_instances, planned_shadow, planned_variant
from seatrial_cdk.scaling.endpoint_scaling import scaling_limits
from tests.sample_plan import LMI_IMAGE, decided, sample_plan

if TYPE_CHECKING:
    from seatrial.documents.plan import Plan
    from seatrial_cdk.endpoint.variant_instances import VariantInstances

TYPES = ["ml.g5.2xlarge", "ml.g6e.2xlarge", "ml.p4d.24xlarge"]
SERVING = RenderedConfig(
    engine="lmi",
    engine_version="27",
    image=LMI_IMAGE,
    payload_schema="lmi",
    files={},
    container_env={},
    secret_env={},
    weights_s3_uri=None,
    isolated=False,
    notes=(),
)
SCOPE = App(analytics_reporting=False)
COUNTS = st.none() | st.integers(1, 900)


def loaded_as(fields: dict[str, object], rails: dict[str, object]) -> LoadedSpec:
    endpoint = EndpointSpec.model_validate(
        {
            "name": "chat",
            "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf"},
            "workload": {"input_tokens": 256, "output_tokens": 256, "concurrency": 16},
            **fields,
        }
    )
    place = EnvironmentSpec(name="dev", region="us-east-1", guard_rails=GuardRails.model_validate(rails))
    empty = Document("chat.yaml", {}, {}, {})
    return LoadedSpec(Path("chat.yaml"), endpoint, place, empty, Document("dev.yaml", {}, {}, {}))


def planned(instance_type: str, copies: int, most: int, surge: int) -> Plan:
    return sample_plan(
        instance_type=decided(instance_type),
        copy_count=decided(copies),
        instance_count=decided(copies),
        max_copies=most,
        max_instances=most,
        surge_instances=decided(surge),
    )


@st.composite
def hostings(draw: st.DrawFn) -> dict[str, object]:
    """Draw every way to host: components, one variant, several, a shadow; each with or without pools."""
    pools = draw(st.none() | st.lists(st.sampled_from(TYPES), min_size=2, max_size=3, unique=True))
    hosting: dict[str, object] = {} if pools is None else {"instance_pools": pools}
    kind = draw(st.sampled_from(["components", "one", "variants", "shadow"]))
    if kind == "components":
        return hosting
    beside = draw(st.sampled_from([{"spec": "other"}, {"image": LMI_IMAGE}]))
    second = {**beside, "instance_count": draw(COUNTS)}
    if kind == "variants":
        hosting["variants"] = [{"name": "a", "instance_count": draw(COUNTS)}, {"name": "b", **second}]
    if kind == "shadow":
        hosting["shadow"] = second
    return {**hosting, "kind": "single_model"}


@st.composite
def rails(draw: st.DrawFn) -> dict[str, object]:
    return {
        "max_copies": draw(COUNTS),
        "usd_per_hour": draw(st.none() | st.floats(0.1, 30_000)),
        "instance_types": draw(st.none() | st.lists(st.sampled_from(TYPES), min_size=1, unique=True)),
    }


def deployment_of(loaded: LoadedSpec, plan: Plan, *variants: Deployment) -> Deployment:
    return Deployment(loaded.endpoint, loaded.environment, plan, SERVING, "{}", has_local_nvme=True, variants=variants)


def created(deployment: Deployment) -> list[tuple[VariantInstances, int]]:
    """Return the instances of each variant as the constructs make them, with the most that scaling asks for."""
    spec = deployment.endpoint
    scaled = 0 if spec.scaling.is_fixed else scaling_limits(spec.scaling).max_capacity
    if spec.hosting.kind == "inference_component":
        instances = planned_instances(deployment.plan, spec.hosting, spec.scaling)
        return [(instances, instances.most)]
    own = own_variant(SCOPE, deployment, "own", None)
    variants = [planned_variant(SCOPE, deployment, each, None) for each in spec.hosting.variants or ()] or [own]
    made = [(each.instances, max(each.instances.initial_count, scaled)) for each in variants]
    if spec.hosting.shadow is not None:
        shadow = planned_shadow(SCOPE, deployment, spec.hosting.shadow, None).instances
        made.append((shadow, shadow.initial_count))
    return made


@settings(max_examples=300, deadline=None)
@given(
    hosting=hostings(),
    forbidden=rails(),
    types=st.tuples(st.sampled_from(TYPES), st.sampled_from(TYPES)),
    counts=st.tuples(st.integers(1, 5), st.integers(1, 5), st.integers(0, 9)),
    discount=st.floats(0, 0.99),
)
def test_what_a_rail_forbids_is_never_created(
    hosting: dict[str, object],
    forbidden: dict[str, object],
    types: tuple[str, str],
    counts: tuple[int, int, int],
    discount: float,
) -> None:
    copies, more, surge = counts
    pools = hosting.get("instance_pools")
    kind = pools[0] if isinstance(pools, list) else types[0]
    fields = {
        "hosting": hosting,
        "scaling": {"min_copies": copies, "max_copies": copies + more},
        "budget": {"discount": discount},
    }
    loaded, plan = loaded_as(fields, forbidden), planned(kind, copies, copies + more, surge)
    other = loaded_as({"name": "other", "hosting": {"kind": "single_model"}}, {})
    beside = deployment_of(other, planned(types[1], more, more, 0))
    judged = Beside(variants={"other": (beside.endpoint, beside.plan)})
    if any(broken_rails(plan, loaded, judged)):
        return
    made, limits = created(deployment_of(loaded, plan, beside)), loaded.environment.guard_rails
    used = {name for instances, _ in made for name in (instances.instance_type, *instances.pools)}
    assert limits.instance_types is None or used <= set(limits.instance_types)
    if limits.max_copies is not None and loaded.endpoint.hosting.kind == "single_model":
        assert sum(most for _, most in made) <= limits.max_copies
    if limits.usd_per_hour is not None:
        assert sum(most * dearest(instances, loaded) for instances, most in made) <= limits.usd_per_hour + 1e-4


def dearest(instances: VariantInstances, loaded: LoadedSpec) -> float:
    prices = [list_price(name, loaded) for name in (instances.instance_type, *instances.pools)]
    return max(price for price in prices if price is not None)


@given(hosting=hostings(), counts=st.tuples(st.integers(1, 5), st.integers(0, 5), st.integers(0, 9)))
@settings(max_examples=100, deadline=None)
def test_the_judged_instances_are_those_that_are_created(
    hosting: dict[str, object], counts: tuple[int, int, int]
) -> None:
    copies, more, surge = counts
    fields = {"hosting": hosting, "scaling": {"min_copies": copies, "max_copies": copies + more}}
    loaded, plan = loaded_as(fields, {}), planned("ml.g5.2xlarge", copies, copies + more, surge)
    other = loaded_as({"name": "other", "hosting": {"kind": "single_model"}}, {})
    beside = deployment_of(other, planned("ml.g6e.2xlarge", 2, 2, 0))
    fleets = created_fleets(plan, loaded, Beside(variants={"other": (beside.endpoint, beside.plan)}))
    made = created(deployment_of(loaded, plan, beside))
    components = loaded.endpoint.hosting.kind == "inference_component"
    judged = sorted((fleet.types[0], fleet.updating if components else fleet.instances) for fleet in fleets)
    assert judged == sorted((instances.instance_type, most) for instances, most in made)


def test_a_variant_of_a_spec_that_is_not_known_is_left_for_later() -> None:
    variants = [{"name": "a", "instance_count": 3}, {"name": "b", "spec": "other"}]
    loaded = loaded_as({"hosting": {"kind": "single_model", "variants": variants}}, {})
    assert [fleet.instances for fleet in created_fleets(planned("ml.g5.2xlarge", 1, 1, 0), loaded, ALONE)] == [3]
