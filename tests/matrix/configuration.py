"""A configuration of the matrix: its documents, and what becomes of it, from the spec to its judged templates."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest
import yaml
from cfnlint import lint  # type: ignore[import-untyped]  # no type information published

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial.locks.lock_file import write_lock
from seatrial.planner.planner import make_plan
from seatrial.specs.guardrails.enforcement import guard_rules
from seatrial.specs.load import load_environment, load_spec
from seatrial_base.errors import SeatrialError
from seatrial_cdk import HostingChecks
from seatrial_stacks.app_stacks import define_stacks
from seatrial_stacks.publish_products import publish
from tests.launch_rights import denied_rights, deployer_policy, launch_policy
from tests.matrix.options import ACCOUNT, OPTIONS, SMALL
from tests.policy_findings import HAS_GUARD, broken_rails, policy_findings
from tests.sample_product import lock_sizes
from tests.stacks.conftest import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from aws_cdk import App

    from tests.matrix.options import Document

Row = dict[str, str]
LINT_EXCEPTIONS = {
    "W3005": "the CDK writes a DependsOn beside a reference",
    "W1001": "a product of one size has one condition, which always holds: its size has one allowed value",
}
"""Rules of cfn-lint whose findings stay, with the reason."""
MOST_RESOURCES, MOST_TEMPLATE_BYTES, MOST_POLICY_CHARACTERS = 500, 1_000_000, 10_240
"""Quotas of CloudFormation, and of the inline policies of a role (IAM and AWS STS quotas)."""
SLO: Final[Document] = {"ttft_ms": {"p95": 20_000}, "tpot_ms": {"p95": 5_000}}
CHAT: Final[Document] = {
    "model": {"hub_id": "mistralai/Mistral-7B-v0.1"},
    "workload": {"input_tokens": 48, "output_tokens": 16, "concurrency": 4},
    "slo": SLO,
    "serving": {"instance_types": [SMALL], "overrides": {"max_model_len": 512, "max_num_seqs": 8}},
    "scaling": {"max_copies": 1},
    "trial": {"concurrency_levels": [1, 2], "requests_per_concurrency": 1, "budget_minutes": 2},
}
PLACE: Final[Document] = {"account": ACCOUNT, "region": "us-east-1"}


@dataclass(frozen=True, slots=True)
class Outcome:
    """What becomes of a configuration.

    Attributes:
        rules: The rules that refuse it before synthesis; none for one that is synthesized.
        faults: What is wrong with what was synthesized, or the exception that is no message for a user.
    """

    rules: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()


def outcome_of(row: Row, folder: Path, *, is_linted: bool = False) -> Outcome:
    """Return what becomes of a row; the options that it lacks have their first values."""
    configuration = configuration_of(row)
    try:
        configuration.write(folder)
        assembly = configuration.synthesized(folder)
    except SeatrialError as error:
        return Outcome(rules=tuple(sorted({problem.rule for problem in error.problems})))
    except Exception as error:  # noqa: BLE001 (a traceback is what is looked for)
        return Outcome(faults=(f"{type(error).__name__}: {str(error)[:300]}",))
    return Outcome(faults=tuple(faults(folder, assembly, configuration, is_linted=is_linted)))


@dataclass(frozen=True, slots=True)
class Configuration:
    """The documents of a row.

    Attributes:
        endpoint: The endpoint's spec.
        place: The environment.
        is_product: The endpoint is vended as a product.
        is_repaired: It is deployed with the context `rollback_alarms=off`.
    """

    endpoint: dict[str, Any]
    place: dict[str, Any]
    is_product: bool
    is_repaired: bool

    def write(self, folder: Path, version: str = "1.0.0") -> None:
        """Write the documents as a platform team has them, with every plan locked; a product is published."""
        environments = folder / "environments"
        rails = {name: value for name, value in self.place.items() if name == "guard_rails"}
        for name, document in (("lab", {**self.place, "vending": self.is_product}), ("dev", {**PLACE, **rails})):
            _write(environments / f"{name}.yaml", {"name": name, **document})
        other = {**CHAT, "model": self.endpoint["model"], "trial": {"mode": "off"}}
        if (kind := self.endpoint.get("hosting", {}).get("kind")) is not None:
            other["hosting"] = {"kind": kind}
        specs = (
            {}
            if self.is_product
            else {"other": other, "chat": self.endpoint}
            if '"other"' in json.dumps(self.endpoint)
            else {"chat": self.endpoint}
        )
        for name, spec in specs.items():
            _write(folder / "endpoints" / f"{name}.yaml", {"name": name, **spec})
        if self.is_product:
            product = folder / "products" / "chat.yaml"
            others = {key: value for key, value in self.endpoint.items() if key != "scaling"}
            _write(
                product,
                {
                    "name": "chat",
                    "description": "A chat endpoint.",
                    "owner": "platform-team",
                    "version": version,
                    "environments": ["lab"],
                    "principals": ["arn:aws:iam:::role/team-*"],
                    "team_principals": {"search": ["arn:aws:iam:::role/search-*"]},
                    "parameters": {"teams": ["search"], "copies": False},
                    "endpoint": others,
                    "sizes": {"small": {"scaling": self.endpoint["scaling"]}},
                },
            )
            lock_sizes(product, environments)
            with pytest.MonkeyPatch.context() as patch:
                patch.chdir(ROOT)
                publish([product], environments)
            return
        for name in specs:
            path = folder / "endpoints" / f"{name}.yaml"
            for environment in ("lab", "dev"):
                if environment == "dev" and "promotion" not in self.place:
                    continue
                loaded = load_spec(path, environment, environments=environments)
                write_lock(make_plan(loaded, accept_slo_miss=True), path)

    def synthesized(self, folder: Path) -> Path:
        """Synthesize what is written in a folder; return the folder of the assembly."""
        context: dict[str, str | Path] = {name: folder / name for name in ("endpoints", "environments", "products")}
        context["environment"] = "lab"
        if self.is_repaired:
            context["rollback_alarms"] = "off"
        return synthesize(folder / "out", context, define, is_validated=True)


def configuration_of(row: Row) -> Configuration:
    """Return the documents of a row; the options that it lacks have their first values."""
    changes = [OPTIONS[name][value] for name, value in row.items()]
    return Configuration(
        endpoint=changed(CHAT, *(each.endpoint for each in changes)),
        place=changed(PLACE, *(each.environment for each in changes)),
        is_product=any(change.is_product for change in changes),
        is_repaired=any(change.is_repaired for change in changes),
    )


def define(app: App) -> None:
    """Add the stacks with the checks of hosting, as the shipped app does."""
    define_stacks(app)
    HostingChecks.add_to(app)


def changed(document: Mapping[str, object], *changes: Mapping[str, object]) -> dict[str, Any]:
    """Return a document with values at dotted fields."""
    whole: dict[str, Any] = json.loads(json.dumps(document))
    for change in changes:
        for path, value in change.items():
            *parents, name = path.split(".")
            node = whole
            for parent in parents:
                node = node.setdefault(parent, {})
            node[name] = value
    return whole


def _write(path: Path, document: Mapping[str, object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(document, sort_keys=False), encoding="utf-8")


def faults(folder: Path, assembly: Path, configuration: Configuration, *, is_linted: bool) -> Iterator[str]:
    """Yield what AWS would refuse of the templates: quotas, policies, rights of the roles that deploy and launch."""
    published = [*folder.glob("products/*/versions/*/*.template.json")]
    files = [*assembly.glob("*.template.json"), *published]
    rules = guard_rules(load_environment(folder / "environments", "lab"))
    for file in files:
        text = file.read_text(encoding="utf-8")
        found = lint(text, regions=["us-east-1"]) if is_linted else ()
        yield from (f"{file.name}: {each}" for each in found if each.rule.id not in LINT_EXCEPTIONS)
        template = json.loads(text)
        broken = broken_rails(template, rules) if HAS_GUARD else {}
        yield from (f"{file.name}: {rail}: {sorted(messages)}" for rail, messages in broken.items())
        if len(text) > MOST_TEMPLATE_BYTES or len(template["Resources"]) > MOST_RESOURCES:
            yield f"{file.name}: {len(text)} bytes, {len(template['Resources'])} resources"
        for name, resource in template["Resources"].items():
            policies = resource["Properties"].get("Policies", []) if resource["Type"] == "AWS::IAM::Role" else []
            size = sum(len(json.dumps(each["PolicyDocument"], separators=(",", ":"))) for each in policies)
            if size > MOST_POLICY_CHARACTERS:
                yield f"{file.name}: {name} has {size} characters of policies"
    yield from policy_findings(files)
    security = configuration.place.get("security", {})
    policy = deployer_policy(security.get("permissions_boundary", ""), security.get("role_path", "/"))
    for file in assembly.glob("*.template.json"):
        for right in denied_rights(json.loads(file.read_text(encoding="utf-8")), policy):
            yield f"{file.name}: the role that deploys may not {right}"
    if configuration.is_product:
        vending = json.loads((assembly / "seatrial-lab-products.template.json").read_text(encoding="utf-8"))
        for file in published:
            for right in denied_rights(json.loads(file.read_text(encoding="utf-8")), launch_policy(vending)):
                yield f"the launch role may not {right}"
