"""A product of two sizes with its environment, in a folder as a platform team would have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import yaml

from seatrial.deployment.product import load_product
from seatrial.locks.changes import count_generation
from seatrial.locks.lock_file import locked_document, write_lock
from seatrial.planner.planner import make_plan

if TYPE_CHECKING:
    from pathlib import Path

ENDPOINT: dict[str, object] = {
    "model": {"hub_id": "meta-llama/Llama-2-7b-chat-hf", "accept_eula": True},
    "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 4},
    "slo": {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}},
    "serving": {"instance_types": ["ml.g5.2xlarge"], "overrides": {"max_model_len": 512, "max_num_seqs": 8}},
    "trial": {"concurrency_levels": [1, 2], "requests_per_concurrency": 1, "budget_minutes": 2},
}
PRODUCT: dict[str, object] = {
    "name": "chat",
    "description": "A chat endpoint.",
    "owner": "platform-team",
    "version": "1.0.0",
    "environments": ["lab"],
    "principals": ["arn:aws:iam:::role/team-*"],
    "parameters": {"teams": ["search", "support"], "cost_centers": ["4711"]},
    "endpoint": ENDPOINT,
    "sizes": {
        "small": {"scaling": {"min_copies": 1, "max_copies": 2}},
        "large": {"workload": {"concurrency": 8}, "scaling": {"min_copies": 1, "max_copies": 3}},
    },
}
LAB: dict[str, object] = {
    "name": "lab",
    "account": "123456789012",
    "region": "us-east-1",
    "removal": "destroy",
    "vending": True,
    "guard_rails": {"max_copies": 4},
    "tags": {"stage": "lab"},
}


def write_product(folder: Path, *, lab: dict[str, object] | None = None, **changes: object) -> Path:
    """Write the product, with top-level fields changed, and its environment; return the product's file."""
    for name, document in (("products/chat", {**PRODUCT, **changes}), ("environments/lab", {**LAB, **(lab or {})})):
        file = folder / f"{name}.yaml"
        file.parent.mkdir(exist_ok=True)
        file.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")
    return folder / "products" / "chat.yaml"


def lock_sizes(product: Path, environments: Path) -> None:
    """Lock the plan of every size of a product, even when it is to miss its SLO."""
    for spec in load_product(product, environments).sizes.values():
        spec.path.parent.mkdir(exist_ok=True)
        plan, _ = count_generation(locked_document(spec), make_plan(spec, accept_slo_miss=True))
        write_lock(plan, spec.path)
