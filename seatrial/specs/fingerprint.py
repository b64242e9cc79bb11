"""The digest of what a plan and its trial are made from: a lock made from another digest is stale."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from seatrial.specs.endpoint import ServingOverrides, TrialSpec, WorkloadSpec
from seatrial.specs.optimization import SPECULATIONS
from seatrial_base.files import read_text
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_load.prompts.dataset import Dataset

# What neither the planner nor the trial reads: it is deployed as the spec says on the day, and re-plans nothing.
_ENDPOINT_ONLY_DEPLOYED: Mapping[str, set[str] | bool] = {
    "schema_version": True,
    "description": True,
    "tags": True,
    "model": {"accept_eula", "hub_token_secret", "licence"},
    "serving": {"adapters"},
    "slo": {"quality"},  # no plan is made for it, and the request of the trial holds all of it
    "scaling": {
        "scale_out_cooldown_s",
        "scale_in_cooldown_s",
        "schedules",
        "scale_in_protection",
        "instance_scale_in",
    },
    "hosting": True,  # but for _PLANNED_HOSTING
}
_PLANNED_HOSTING = {"kind", "instance_pools"}  # fields of `hosting` that a plan is made for
_ENVIRONMENT_ONLY_DEPLOYED: Mapping[str, set[str] | bool] = {
    **dict.fromkeys(("schema_version", "account", "owner", "network", "alarms", "kms_key_arn", "removal"), True),
    **dict.fromkeys(
        ("tags", "prices", "promotion", "retention", "vending", "security", "outputs", "observability"), True
    ),
    **dict.fromkeys(("trial_schedule", "trial_window_minutes"), True),
    # Guard rails that no plan is chosen by: each plan is checked against them whenever its lock is read.
    "guard_rails": {
        *("models", "licences", "images", "code", "extra", "hub_token_secrets"),
        *("slo", "trial_mode", "trial", "required_tags", "job_usd"),
    },
}
_GUARD_RAILS_ADDED_LATER = ("engines", "usd_per_million_output_tokens", "blended_usd_per_million_tokens")
# Fields that came after the first locks were written: one that is left out (None, 0 or auto) makes no lock stale.
_ADDED_LATER = (
    ("optimization",),
    ("model", "shape"),
    ("model", "jumpstart_metadata"),
    ("model", "model_package_arn"),
    ("model", "hub_content_arn"),
    ("serving", "code"),
    ("workload", "max_model_len"),
    ("workload", "prefix_hit_rate"),
    ("workload", "input_tokens_stddev"),
    ("workload", "output_tokens_stddev"),
    ("workload", "dataset"),
    ("workload", "shared_prefix_tokens"),
    ("workload", "api"),
    ("budget", "usd_per_million_output_tokens"),
    ("budget", "blended_usd_per_million_tokens"),
    ("budget", "discount"),
    ("serving", "backend"),
)
# Options that the first locks hold even where nothing fixes them; every later one is left out there.
_FIRST_OVERRIDES = frozenset(
    {
        "tensor_parallel_degree",
        "max_model_len",
        "max_num_seqs",
        "max_num_batched_tokens",
        "max_queued_requests",
        "dtype",
        "quantization",
        "extra",
    }
)
_LEFT_OUT: tuple[object, ...] = (None, 0, "auto", [])
# Fields of the workload and of the trial that came later; each is left out when it has its default.
_WORKLOAD_ADDED_LATER = (
    "prefix_groups",
    "arrivals",
    "arrival_smoothness",
    "turns",
    "turns_stddev",
    "turn_delay_s",
    "turn_delay_stddev_s",
)
_TRIAL_ADDED_LATER = (
    "update",
    "search",
    "target",
    "goal",
    "ramp_per_concurrency",
    "max_requests_per_concurrency",
    "precision",
    "shared_prefix_tokens",
    "prefix_groups",
    "budget_usd",
    "stall_timeout_s",
    "max_retries",
    "confidence",
    "on_inconclusive",
    "on_regression",
    "regression_tolerance",
)

_LATER_WITH_DEFAULTS = (("workload", WorkloadSpec, _WORKLOAD_ADDED_LATER), ("trial", TrialSpec, _TRIAL_ADDED_LATER))


def fingerprint(
    endpoint: EndpointSpec,
    environment: EnvironmentSpec,
    *,
    config_file: str | None = None,
    dataset: Dataset | None = None,
    calibration: Mapping[str, object] | None = None,
    prices: Mapping[str, object] | None = None,
) -> str:
    """Return the digest of everything that can change the plan or the trial.

    Of the hub token only whether there is one counts: the plan warns of it.

    Args:
        endpoint: The endpoint.
        environment: The environment.
        config_file: The content of `model.config_file`; `None` without one.
        dataset: What is taken of `workload.dataset`; empty or `None` without one.
        calibration: What trials measured of this endpoint in this environment; `None` without any.
        prices: What the team's prices file says of the environment's region; `None` without any.
    """
    asked = {
        "endpoint": _endpoint(endpoint),
        "environment": _environment(environment),
        "has_hub_token": endpoint.model.hub_token_secret is not None,
    }
    if config_file is not None:
        asked["config_file"] = config_file
    if dataset is not None and dataset.pairs:
        asked["dataset"] = digest(_canonical(dataset.pairs))
        if dataset.times_s:
            asked["recorded_times"] = digest(_canonical(dataset.times_s))
        if dataset.turns:
            asked["conversations"] = digest(_canonical([dataset.turns, dataset.delays_s]))
    if calibration is not None:
        asked["calibration"] = calibration
    if prices is not None:
        asked["prices"] = prices
    return digest(_canonical(asked))


def config_file_content(path: Path) -> str:
    """Return a `config.json` in canonical form, so that only what it says counts; as it is when it is no JSON.

    A file that can't be read has no content here: whoever plans with it is told so.
    """
    try:
        text = read_text(path, errors="replace")
    except OSError:
        return ""
    try:
        return _canonical(json.loads(text))
    except (ValueError, RecursionError):
        return text


def _endpoint(endpoint: EndpointSpec) -> dict[str, object]:
    dumped = endpoint.model_dump(mode="json", exclude=_ENDPOINT_ONLY_DEPLOYED)
    later = (name for name in ServingOverrides.model_fields if name not in _FIRST_OVERRIDES)
    for *parents, name in (*_ADDED_LATER, *(("serving", "overrides", name) for name in later)):
        node = dumped
        for parent in parents:
            node = node[parent]
        if node[name] in _LEFT_OUT and node[name] is not False:
            del node[name]
    for part, kind, names in _LATER_WITH_DEFAULTS:
        for name in names:
            if dumped[part][name] == kind.model_fields[name].default:
                del dumped[part][name]
    if any(entry.name in SPECULATIONS for entry in endpoint.optimization):
        dumped["serving"]["overrides"].pop("speculative_decoding", None)  # the recipe says it, the catalog its defaults
    if hosting := endpoint.hosting.model_dump(mode="json", include=_PLANNED_HOSTING, exclude_defaults=True):
        dumped["hosting"] = hosting
    if endpoint.hosting.asynchronous is not None:  # a real-time endpoint can't become one, nor back
        dumped["hosting"] = {**hosting, "asynchronous": True}
    return dumped


def _environment(environment: EnvironmentSpec) -> dict[str, object]:
    dumped = environment.model_dump(mode="json", exclude=_ENVIRONMENT_ONLY_DEPLOYED)
    for name in _GUARD_RAILS_ADDED_LATER:
        if dumped["guard_rails"][name] is None:
            del dumped["guard_rails"][name]
    if dumped["purchase"] == "on_demand":
        del dumped["purchase"]
    return dumped


def _canonical(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
