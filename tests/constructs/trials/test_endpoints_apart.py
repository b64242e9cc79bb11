"""Of two endpoints that `validate` accepts, no cleanup of one touches what the other owns."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from seatrial_base.tags import candidate_name, candidate_tags, is_reserved_name
from seatrial_cdk.trials.runtime.handler import dispatch
from seatrial_cdk.trials.runtime.log_groups import log_groups_of
from seatrial_cdk.trials.runtime.store import HELD, STATE_FOLDERS
from tests.constructs.conftest import DictComponents, DictScaling, DictStore, component
from tests.constructs.trials.conftest import World

if TYPE_CHECKING:
    from seatrial_cdk.trials.runtime.order import CustomResourceEvent

WORD = st.sampled_from(["a", "chat", "hr", "candidate", "candidate-0a1b2c3d", "model", "adapter", "trial", "0a1b2c3d"])
NAME = st.lists(WORD, min_size=1, max_size=6).map("-".join).map(lambda name: name[:40].rstrip("-"))
ADAPTER = WORD.filter(lambda name: not is_reserved_name(name))
VALID = NAME.filter(lambda name: not is_reserved_name(name))
URL = "https://cloudformation.example/answer?signature=x"
STACK = "arn:aws:cloudformation:us-east-1:123456789012:stack/seatrial-dev/1"


def owned(world: World, endpoint: str, adapter: str) -> set[str]:
    """Give an endpoint its components, a candidate, documents and logs; return what must stay of them."""
    live = {f"{endpoint}-model", f"{endpoint}-adapter-{adapter}"}
    candidate = candidate_name(endpoint, f"request-of-{endpoint}")
    for name in (*live, candidate):
        world.components.found[name] = component(name, endpoint_name=endpoint)
    world.components.in_stack |= live
    world.components.tagged[candidate] = candidate_tags("dev", endpoint, f"request-of-{endpoint}")
    keys = {f"{folder}/{endpoint}/x.json" for folder in STATE_FOLDERS if folder != HELD}
    world.store.texts |= dict.fromkeys(keys, "{}")
    return {*live, *keys, candidate, *log_groups_of(endpoint, f"{endpoint}-model")}


def touched(world: World, before: set[str]) -> set[str]:
    """Return what was deleted or changed of what there was."""
    there = {*world.components.found, *world.store.texts}
    logs = world.logs.deleted | world.logs.limited
    return {each for each in before if each in logs or (not each.startswith("/") and each not in there)}


@given(VALID, VALID, ADAPTER)
def test_a_deletion_and_the_sweep_touch_what_is_its_own(one: str, two: str, adapter: str) -> None:
    first, second = f"dev-{one}", f"dev-{two}"
    world = World(DictStore(), DictScaling(), DictComponents())
    world.status = "ROLLBACK_IN_PROGRESS"
    owned(world, first, adapter)
    others = owned(world, second, adapter) if second != first else set()
    deletion: CustomResourceEvent = {
        "RequestType": "Delete",
        "RequestId": "deletion",
        "StackId": STACK,
        "LogicalResourceId": "Candidate",
        "ResponseURL": URL,
        "ResourceProperties": {
            "Phase": "candidate",
            "EndpointName": first,
            "InferenceComponentName": f"{first}-model",
            "Removal": "destroy",
        },
    }
    world.ask(deletion)
    world.status = "DELETE_IN_PROGRESS"
    world.ask({**deletion, "RequestId": "deletion-2"})
    assert touched(world, others) == set()
    assert world.components.deleted == [candidate_name(first, f"request-of-{first}")]
    dispatch({"Sweep": True}, world.context)
    assert touched(world, others) <= {candidate_name(second, f"request-of-{second}")}, "which no request owns"
    assert {f"{first}-model", f"{first}-adapter-{adapter}"} <= world.components.found.keys()
