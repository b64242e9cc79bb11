"""The digest of what a plan and its trial are made from: a lock made from another digest is stale.

Which fields count is said by the fields themselves (`seatrial_base.field_facts`).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from seatrial.specs.optimization import SPECULATIONS
from seatrial_base.files import read_text
from seatrial_base.frozen_model import digest, digested

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from seatrial.specs.endpoint import EndpointSpec
    from seatrial.specs.environment import EnvironmentSpec
    from seatrial_load.prompts.dataset import Dataset


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
        "environment": digested(environment),
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


def _endpoint(endpoint: EndpointSpec) -> dict[str, Any]:
    counted = digested(endpoint)
    if any(entry.name in SPECULATIONS for entry in endpoint.optimization):
        # The recipe says it, and the catalog its defaults: a newer default of the catalog makes no lock stale.
        counted["serving"]["overrides"].pop("speculative_decoding", None)
    return counted


def _canonical(document: object) -> str:
    return json.dumps(document, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
