"""Which deployments a probe measures, and the spec of each: one copy, one level, mode report.

Instance type, degree and load are fixed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from seatrial.deployment.load import load_deployments
from seatrial.documents.plan import hardware_words
from seatrial.locks.lock_file import write_lock
from seatrial.planner.calibration import model_name
from seatrial.planner.planner import make_plan
from seatrial.specs.load import load_spec
from seatrial.specs.prices import PRICES_FILE, prices_path
from seatrial.specs.shapes import INSTANCE_TYPE
from seatrial.specs.spec_files import SCHEMA_VERSION, calibration_path
from seatrial.specs.yaml_source import yaml_text
from seatrial_base.errors import SeatrialError, SpecError
from seatrial_base.files import follow_links, kind_of
from seatrial_base.frozen_model import digest

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from seatrial.deployment.document import Deployment
    from seatrial.documents.plan import Plan, Probe, SaferDeployment
    from seatrial.specs.load import LoadedSpec
    from seatrial.specs.yaml_source import Yaml
    from seatrial_base.findings import Finding

LONGEST_NAME: Final = 40  # of an endpoint, as in its spec
_DIGEST: Final = 6  # characters that distinguish two long names
_NOT_OF_PROBES: Final = (
    *("trial_mode", "trial", "slo"),
    *("usd_per_million_output_tokens", "blended_usd_per_million_tokens"),
)
_FILES: Final = (
    ("model", "config_file"),
    ("model", "jumpstart_metadata"),
    ("serving", "code"),
    ("workload", "dataset"),
)
"""Fields that name a file relative to the spec."""
Role = Literal["plan", "candidate"]
WHERE = "command line"
_MOST_DEGREE = 1024  # as of serving.overrides.tensor_parallel_degree


@dataclass(frozen=True, slots=True)
class PinnedSpec:
    """A deployment of a probe, planned, locked and rendered.

    Attributes:
        least_tok_s: One copy's share of `slo.output_tok_s`; `None` without one. The planner refuses what is predicted
            to miss it, so the spec leaves it out, and the answer of the probe judges it.
        environments: Folder of the environment that it is deployed to.
    """

    probed: ProbedDeployment
    loaded: LoadedSpec
    deployment: Deployment
    environments: Path
    least_tok_s: float | None = None

    @property
    def plan(self) -> Plan:
        """The plan of its one copy."""
        return self.deployment.plan


def pinned_name(name: str, role: str, purpose: str = "probe") -> str:
    """Return the name of a probe's endpoint, as long as a spec allows: `chat-probe-candidate`."""
    suffix = f"-{purpose}-{role}"
    room = LONGEST_NAME - len(suffix)
    if len(name) <= room:
        return f"{name}{suffix}"
    return f"{name[: room - _DIGEST - 1].rstrip('-')}-{digest(name)[:_DIGEST]}{suffix}"


def pinned_document(loaded: LoadedSpec, probed: ProbedDeployment, folder: Path) -> dict[str, Yaml]:
    """Return the spec of one deployment of a probe.

    Limits of the budget and the objective on throughput are left out, as they hold for all copies together; the
    discount stays.

    Args:
        folder: The folder of the spec; names of files are relative to it.
    """
    document = copied(loaded.document.data)
    document["name"] = pinned_name(loaded.endpoint.name, probed.role)
    on_hardware(document, probed.hardware)
    one_copy(document, loaded, gate=probed.concurrency_per_copy, levels=(probed.concurrency_per_copy,))
    relocate(document, loaded.path.parent, folder)
    return document


def on_hardware(document: dict[str, Yaml], hardware: ProbedHardware) -> None:
    """Fix the instance type and the tensor parallel degree of a spec."""
    serving = _mapping(document, "serving")
    serving["instance_types"] = [hardware.instance_type]
    _mapping(serving, "overrides")["tensor_parallel_degree"] = hardware.tensor_parallel_degree


def one_copy(document: dict[str, Yaml], loaded: LoadedSpec, *, gate: int, levels: Sequence[int]) -> None:
    """Make a spec that of one copy, tried at some levels in mode report.

    Args:
        loaded: The endpoint's own, whose discount stays.
        gate: Requests in flight at which the SLO must hold.
    """
    workload = _mapping(document, "workload")
    for of_a_rate in ("requests_per_second", "arrivals", "arrival_smoothness"):
        workload.pop(of_a_rate, None)
    workload["concurrency"] = gate
    objective = document.get("objective")
    if isinstance(objective, dict):
        objective.pop("headroom", None)
    document["scaling"] = {**_mapping(document, "scaling"), "min_copies": 1, "max_copies": 1}
    document.pop("hosting", None)  # one copy alone on one instance type
    document["budget"] = {"discount": loaded.endpoint.budget.discount}
    slo = _mapping(document, "slo")
    for objective in ("output_tok_s", "quality"):
        slo.pop(objective, None)
    trial = _mapping(document, "trial")
    trial.pop("goal", None)
    trial |= {"mode": "report", "search": "sweep", "concurrency_levels": list(levels)}


def copied(data: dict[str, Yaml]) -> dict[str, Yaml]:
    """Return a copy that can be changed."""
    copied: dict[str, Yaml] = json.loads(json.dumps(data))
    return copied


def _mapping(document: dict[str, Yaml], name: str) -> dict[str, Yaml]:
    """Return the mapping of a field; an empty one is made where there is none."""
    mapping = document.get(name)
    if not isinstance(mapping, dict):
        mapping = document[name] = {}
    return mapping


def relocate(document: dict[str, Yaml], before: Path, after: Path) -> None:
    """Name the spec's files relative to another folder; an absolute path stays, to be judged as it was written."""
    for section, field in _FILES:
        part = document.get(section)
        name = part.get(field) if isinstance(part, dict) else None
        if isinstance(part, dict) and isinstance(name, str) and not Path(name).is_absolute():
            part[field] = os.path.relpath(follow_links(before) / name, follow_links(after))


def pin(
    loaded: LoadedSpec, probed: Iterable[ProbedDeployment], folder: Path, environments: Path
) -> tuple[PinnedSpec, ...]:
    """Write, plan, lock and render the spec of each deployment, each in a folder of its own.

    Args:
        folder: What an earlier probe left there is replaced; it is in the spec's repository.

    Raises:
        SpecError: With every problem of every deployment; what was written is removed.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pinned: list[PinnedSpec] = []
    problems: list[Finding] = []
    for each in probed:
        try:
            own = folder / each.role
            spec, deployment, place = pin_document(loaded, pinned_document(loaded, each, own), own, environments)
            throughput = loaded.endpoint.slo.output_tok_s
            least_tok_s = None if throughput is None else throughput / each.copy_count
            pinned.append(PinnedSpec(each, spec, deployment, place, least_tok_s))
        except SeatrialError as error:
            problems += error.problems
    if problems:
        shutil.rmtree(folder, ignore_errors=True)
        raise SpecError(dict.fromkeys(problems))
    return tuple(pinned)


def pin_document(
    loaded: LoadedSpec, document: dict[str, Yaml], folder: Path, environments: Path
) -> tuple[LoadedSpec, Deployment, Path]:
    """Write, plan, lock and render a spec in a folder of its own.

    Returns:
        The spec, what is deployed, and the folder of the environment that it is deployed to.

    Raises:
        SeatrialError: With every problem of the spec or its plan.
    """
    folder.mkdir(parents=True, exist_ok=True)
    name = loaded.environment.name
    path = folder / f"{document['name']}.yaml"
    path.write_text(yaml_text(document), encoding="utf-8")
    _copy_calibration(loaded, path, f"{document['name']}")
    environments = _environments(loaded, folder, environments)
    pinned = load_spec(path, name, environments=environments)
    # What is predicted to miss the SLO is just what a probe is for.
    write_lock(make_plan(pinned, accept_slo_miss=True), path)
    (deployment,) = load_deployments(folder, environments, name).deployments
    return pinned, deployment, environments


def _environments(loaded: LoadedSpec, folder: Path, environments: Path) -> Path:
    """Return the folder of the probe's environment: a copy where the original requires what no single copy can give.

    The copy has no promotion, and no guard rails on trial mode, SLO and price per token: a probe is tried in mode
    report, and it is not an endpoint that anybody uses. All others hold for it too.
    """
    place = copied(loaded.place.data)
    rails = _mapping(place, "guard_rails")
    dropped = [rails.pop(name, None) for name in _NOT_OF_PROBES] + [place.pop("promotion", None)]
    if not any(dropped):
        return environments
    prices = prices_path(environments, loaded.environment.prices)
    own = folder / "environments"
    own.mkdir()
    if kind_of(prices):
        place.pop("prices", None)
        shutil.copyfile(prices, own / PRICES_FILE)
    text = yaml_text(place)
    (own / f"{loaded.environment.name}.yaml").write_text(text, encoding="utf-8")
    return own


def _copy_calibration(loaded: LoadedSpec, path: Path, endpoint: str) -> None:
    """Write the endpoint's calibration next to the probe's spec; a model that has no other name is called as it is."""
    entry = None if loaded.calibration is None else dict(loaded.calibration)
    if entry is None:
        return
    own = model_name(loaded.endpoint)
    if entry.get("model") == own == loaded.endpoint.name:
        entry["model"] = endpoint
    document = {"schema_version": SCHEMA_VERSION, "environments": {loaded.environment.name: entry}}
    calibration_path(path).write_text(json.dumps(document), encoding="utf-8")


@dataclass(frozen=True, slots=True)
class ProbedHardware:
    """What one copy runs on."""

    instance_type: str
    tensor_parallel_degree: int

    @classmethod
    def of(cls, plan: Plan) -> ProbedHardware:
        """Return the hardware of a plan."""
        return cls(plan.instance_type.value, plan.tensor_parallel_degree.value)

    def __str__(self) -> str:
        return hardware_words(self.instance_type, self.tensor_parallel_degree)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbedDeployment:
    """One deployment of a probe: one copy, loaded at one level.

    Attributes:
        role: Whether it is the plan's deployment or the one that is compared with it.
        hardware: What the copy runs on.
        copy_count: Copies that would serve the whole workload; an objective on their throughput is shared by them.
        concurrency_per_copy: Requests in flight on the copy: the level.
    """

    role: Role
    hardware: ProbedHardware
    copy_count: int
    concurrency_per_copy: int


def read_candidate(text: str, option: str = "--candidate") -> ProbedHardware:
    """Read `ml.g6e.12xlarge:4`: an instance type and a tensor parallel degree.

    Raises:
        SpecError: SEA524 when it is not that.
    """
    instance_type, _, degree = text.partition(":")
    if re.fullmatch(INSTANCE_TYPE, instance_type) and re.fullmatch("[1-9][0-9]{0,3}", degree):
        hardware = ProbedHardware(instance_type, int(degree))
        if hardware.tensor_parallel_degree <= _MOST_DEGREE:
            return hardware
    message = f"{text[:60]!r} is not an instance type with a tensor parallel degree"
    raise SpecError.of("SEA524", message, hint="write ml.g6e.12xlarge:4", where=WHERE, field=option)


def deployments_to_probe(
    plan: Plan, candidate: ProbedHardware | None, level: int | None
) -> tuple[ProbedDeployment, ...]:
    """Return what to measure, the plan first; none where it is not in doubt and nothing is requested.

    Args:
        candidate: The deployment to compare with; `None` takes that of the plan's probe.
        level: Requests in flight per copy, of both; `None` takes the level of the plan's probe for its deployment, and
            the gate for any other.
    """
    probe = plan.probe
    if candidate is None and probe is not None:
        candidate = _hardware_of(probe)
    if candidate is None and level is None:
        return ()
    planned = probed_as(plan, ProbedHardware.of(plan), level)
    if candidate is None or candidate == planned.hardware:
        return (planned,)
    return planned, probed_as(plan, candidate, level)


def probed_as(plan: Plan, hardware: ProbedHardware, level: int | None) -> ProbedDeployment:
    """Return the deployment on some hardware, with the copies and the level that the plan has for it.

    Args:
        level: Requests in flight per copy; `None` takes that of the plan.
    """
    is_planned = hardware == ProbedHardware.of(plan)
    sides = (plan.probe, None if is_planned else plan.safer)
    side = next((one for one in sides if one is not None and hardware == _hardware_of(one)), None)
    copies = plan.copy_count.value if side is None else side.copy_count
    own = plan.gate_concurrency_per_copy.value if side is None else side.concurrency_per_copy
    return ProbedDeployment(
        role="plan" if is_planned else "candidate",
        hardware=hardware,
        copy_count=copies,
        concurrency_per_copy=own if level is None else level,
    )


def _hardware_of(side: Probe | SaferDeployment) -> ProbedHardware:
    return ProbedHardware(side.instance_type, side.tensor_parallel_degree)
