"""What the launch role of products may do, judged by the rights that the embedded AWS asks for."""

from __future__ import annotations

import json
import re
from contextlib import chdir, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from ministack.core.iam_evaluator import EvalContext, evaluate, parse_policy_document
from ministack.services.cloudformation import engine

from benchmarks.living_endpoint.synthesis import synthesize
from seatrial_base.catalog.resource_types import HANDLERS, RESOURCE_SCHEMAS, handler_actions
from seatrial_laptop.aws.cloudformation import handler_rights
from seatrial_laptop.aws.cloudformation.handler_rights import ResourceOperation, needed_rights
from seatrial_laptop.environment import ACCOUNT_VARIABLE
from seatrial_stacks.publish_products import publish
from tests.resource_types import resolved_resources
from tests.sample_product import ENDPOINT, lock_sizes, write_product
from tests.tools import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from seatrial_base.catalog.resource_types import Handler
    from seatrial_laptop.aws.rights import Right

Template = Any  # a document of CloudFormation
ACCOUNT = "123456789012"
WHAT_RUNS = ("lambda:InvokeFunction", "secretsmanager:GetSecretValue", "ssm:GetParameters", "kms:Decrypt")
"""What custom resources and dynamic references need beside the handlers (`docs/reference/handlers.md`)."""
BOUNDED = re.compile(r"iam:(Create|Put|Attach|Detach|Delete)Role(Policy|PermissionsBoundary)?")
"""What an account allows on bounded roles alone."""
PARAMETERS = {
    "Team": "search",
    "EndpointName": "a",
    "Size": "small",
    "CostCenter": "4711",
    "AlarmEmail": "a@example.com",
}


def published(
    folder: Path, endpoint: Template, lab: Template, others: Mapping[str, object] | None = None
) -> tuple[Template, Template]:
    """Publish a product in a new folder; return its template, and that of the vending stack.

    Args:
        endpoint: What differs of the product's endpoint.
        lab: What differs of its environment.
        others: What differs of the product.
    """
    folder.mkdir(exist_ok=True)
    product = write_product(folder, lab=lab, endpoint={**ENDPOINT, **endpoint}, **(others or {}))
    lock_sizes(product, folder / "environments")
    with chdir(ROOT):
        publish([product], folder / "environments")
    context = {name: folder / name for name in ("endpoints", "environments", "products")}
    assembly = synthesize(folder / "out", {**context, "environment": "lab"})
    template = folder / "products" / "chat" / "versions" / "1.0.0" / "lab.template.json"
    return json.loads(template.read_text()), json.loads((assembly / "seatrial-lab-products.template.json").read_text())


@contextmanager
def account_of(template: Template) -> Iterator[None]:
    """Judge rights in the account of the template, where its roles are."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(ACCOUNT_VARIABLE, ACCOUNT)
        patch.setattr(engine, "get_account_id", lambda: ACCOUNT)
        roles = {
            name: {
                "Arn": f"arn:aws:iam::{ACCOUNT}:role{properties.get('Path', '/')}{name}",
                "PermissionsBoundary": properties.get("PermissionsBoundary"),
            }
            for name, resource_type, properties in resolved_resources(template, PARAMETERS)
            if resource_type == "AWS::IAM::Role"
        }
        patch.setattr(handler_rights, "find_role", roles.get)
        yield


def needed(template: Template, *, sees_tags: bool = True) -> list[tuple[str, Handler, Right]]:
    """Return the rights that a launch, an update and a termination need: type, handler, right.

    Args:
        sees_tags: Whether the tags of what is launched are visible.
    """
    with account_of(template):
        return [
            (resource_type, operation.handler, right)
            for name, resource_type, properties in resolved_resources(template, PARAMETERS)
            for operation in operations(name, resource_type, properties)
            for right in needed_rights(replace(operation, sees_tags=sees_tags))
        ]


def denied_rights(template: Template, policy: Template, *, sees_tags: bool = True) -> list[str]:
    """Return the rights that a launch needs and its role has not: type, handler, action, resource."""
    document = json.loads(resolved(policy))
    denied = {
        f"{kind} {handler}: {right.action} on {right.resource}"
        for kind, handler, right in needed(template, sees_tags=sees_tags)
        if not allows(document, right)
    }
    return sorted(denied)


def launch_policy(vending: Template) -> Any:  # noqa: ANN401 (a document of CloudFormation)
    """Return the policy of the launch role; the boundary by its ARN."""
    roles = [each["Properties"] for each in vending["Resources"].values() if each["Type"] == "AWS::IAM::Role"]
    (role,) = [each for each in roles if "products-launch" in str(each.get("RoleName"))]
    text = json.dumps(role["Policies"][0]["PolicyDocument"])
    boundary = f'"arn:aws:iam::{ACCOUNT}:policy/seatrial-lab-products-boundary"'
    named = re.sub(r'\{"Ref": "LaunchRoleBoundary[0-9A-F]+"\}', boundary, text)
    return json.loads(
        named.replace('{"Ref": "AWS::Partition"}', '"aws"').replace('{"Ref": "AWS::URLSuffix"}', '"amazonaws.com"')
    )


def deployer_policy(boundary: str, path: str) -> Template:
    """Return the policy of a role that deploys: what `docs/reference/handlers.md` lists.

    Args:
        boundary: The policy that bounds every role that it makes or changes; empty for none.
        path: Of the names of these roles, as `/platform/`.
    """
    listed = {
        action
        for row in RESOURCE_SCHEMAS.rows
        for handler in HANDLERS
        for action in handler_actions(row.resource_type, handler)
    }
    actions = {*listed, *WHAT_RUNS}
    bounded = {action for action in actions if boundary and BOUNDED.fullmatch(action)}
    roles = f"arn:aws:iam::{ACCOUNT}:role{path}*"
    only = {"StringEquals": {"iam:PermissionsBoundary": boundary}}
    statements = [
        {"Effect": "Allow", "Action": sorted(actions - bounded), "Resource": "*"},
        {"Effect": "Allow", "Action": sorted(bounded), "Resource": roles, "Condition": only},
    ]
    return {"Version": "2012-10-17", "Statement": statements if bounded else statements[:1]}


def allows(document: Template, right: Right) -> bool:
    asked = EvalContext(
        principal_arn=f"arn:aws:iam::{ACCOUNT}:role/launch",
        principal_type="AssumedRole",
        principal_account=ACCOUNT,
        action=right.action,
        resource_arn=right.resource,
        region="us-east-1",
        service_context=dict(right.context),
    )
    return bool(evaluate(asked, [parse_policy_document(document)]).decision == "Allow")


def resolved(policy: Template) -> str:
    """Return a policy whose joined texts are texts."""

    def flat(node: Any) -> Any:  # noqa: ANN401 (a part of the document)
        if isinstance(node, dict) and "Fn::Join" in node:
            return "".join(flat(each) for each in node["Fn::Join"][1])
        if isinstance(node, dict):
            return {key: flat(value) for key, value in node.items()}
        return [flat(each) for each in node] if isinstance(node, list) else node

    return json.dumps(flat(policy))


def operations(name: str, resource_type: str, properties: dict[str, object]) -> Iterator[ResourceOperation]:
    """Yield a creation, a deletion, and an update that changes everything but the names."""
    before = {
        key: ["other"] if isinstance(value, list) and '"Key":' not in json.dumps(value) else value
        for key, value in properties.items()
    }
    before["Tags"] = [] if isinstance(properties.get("Tags"), list) else properties.get("Tags")
    tags = {"Tags": properties["Tags"]} if "Tags" in properties else {}
    before = {key: value for key, value in {**before, **tags}.items() if value is not None}
    each: tuple[tuple[Handler, dict[str, object], dict[str, object]], ...] = (
        ("create", {}, properties),
        ("update", before, properties),
        ("delete", properties, {}),
    )
    for handler, old, new in each:
        yield ResourceOperation(resource_type, handler, "SC-1", name, "" if handler == "create" else name, old, new)
