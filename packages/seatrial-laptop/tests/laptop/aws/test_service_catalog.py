"""Service Catalog on the embedded AWS: who may launch what, with whose rights, and what becomes of versions."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from botocore.exceptions import ClientError

from seatrial_laptop import lifecycle
from seatrial_laptop.aws.service_catalog import Provisioned, root_arn
from seatrial_laptop.environment import ACCOUNT_VARIABLE
from tests.environment import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Laptop = Any  # the fixture's class lives in conftest.py, which nobody can import
Client = Any  # no stubs of the services are installed
LONGEST_S = 30.0
ACCOUNT = "000000000000"
ALL = {"Statement": [{"Effect": "Allow", "Action": "servicecatalog:*", "Resource": "*"}]}
NAME = "/vended/${AWS::StackName}/${Team}"
PARAMETER = {
    "Parameters": {"Team": {"Type": "String"}, "Value": {"Type": "String", "Default": "v"}},
    "Resources": {
        "P": {
            "Type": "AWS::SSM::Parameter",
            "Properties": {"Name": {"Fn::Sub": NAME}, "Type": "String", "Value": {"Ref": "Value"}},
        }
    },
    "Outputs": {"Team": {"Value": {"Ref": "Team"}}},
}


class Shop:
    """A portfolio with one product, and the clients of its root and of users."""

    def __init__(self, laptop: Laptop) -> None:
        self.laptop = laptop
        self.stack, self.bucket = laptop.name("portfolio"), laptop.name("templates")
        self.product: dict[str, object] = PARAMETER
        self.more_rights: tuple[str, ...] = ()
        self.teams: tuple[str, ...] = ()
        laptop.s3.create_bucket(Bucket=self.bucket)
        with environment(lifecycle.child_variables(laptop.local)):
            self.iam, self.catalog = boto3.client("iam"), boto3.client("servicecatalog")

    def offer(self, *versions: str, rights: str = "/vended/*", **constraints: object) -> str:
        """Create or update the portfolio, and return the product's ID."""
        for version in versions:
            self.laptop.s3.put_object(Bucket=self.bucket, Key=version, Body=json.dumps(self.product).encode())
        template = self._template(versions, rights, constraints)
        client = self.laptop.cloudformation
        known = {each["StackName"] for each in client.describe_stacks()["Stacks"]}
        verb = "update" if self.stack in known else "create"
        body = {"StackName": self.stack, "TemplateBody": json.dumps(template), "Capabilities": ["CAPABILITY_IAM"]}
        getattr(client, f"{verb}_stack")(**body)
        client.get_waiter(f"stack_{verb}_complete").wait(
            StackName=self.stack, WaiterConfig={"Delay": 0.1, "MaxAttempts": 300}
        )
        outputs = client.describe_stacks(StackName=self.stack)["Stacks"][0]["Outputs"]
        return next(str(each["OutputValue"]) for each in outputs if each["OutputKey"] == "Product")

    def _template(self, versions: tuple[str, ...], rights: str, constraints: dict[str, object]) -> dict[str, object]:
        product = {"PortfolioId": {"Ref": "Portfolio"}, "ProductId": {"Ref": "Product"}}
        may = {"Effect": "Allow", "Action": "ssm:*", "Resource": f"arn:aws:ssm:*:*:parameter{rights}"}
        trust = {
            "Effect": "Allow",
            "Action": "sts:AssumeRole",
            "Principal": {"Service": "servicecatalog.amazonaws.com"},
        }
        role = {
            "AssumeRolePolicyDocument": {"Statement": [trust]},
            "Policies": [{"PolicyName": "launch", "PolicyDocument": {"Statement": [may, *self._more()]}}],
        }
        artifacts = [
            {"Name": each, "Info": {"LoadTemplateFromURL": f"https://s3.us-east-1.amazonaws.com/{self.bucket}/{each}"}}
            for each in versions
        ]
        resources = {
            "Portfolio": ("Portfolio", {"DisplayName": self.stack, "ProviderName": "platform"}),
            "Product": (
                "CloudFormationProduct",
                {"Name": self.stack, "Owner": "platform", "ProvisioningArtifactParameters": artifacts},
            ),
            "Offered": ("PortfolioProductAssociation", product),
            "Team": (
                "PortfolioPrincipalAssociation",
                {
                    "PortfolioId": {"Ref": "Portfolio"},
                    "PrincipalARN": f"arn:aws:iam:::user/{self.stack}-*",
                    "PrincipalType": "IAM_PATTERN",
                },
            ),
            "Launch": ("LaunchRoleConstraint", {**product, "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}),
            **{name: (name, {**product, **_mapping(given)}) for name, given in constraints.items()},
        }
        for team in self.teams:  # each has a portfolio of its own, as `team_principals` of a product make them
            there = {**product, "PortfolioId": {"Ref": f"Portfolio{team}"}}
            assertion = {"Assert": {"Fn::Contains": [[team], {"Ref": "Team"}]}, "AssertDescription": "not yours"}
            who = {"PrincipalARN": f"arn:aws:iam:::user/{team}-{self.stack}", "PrincipalType": "IAM_PATTERN"}
            resources |= {
                f"Portfolio{team}": ("Portfolio", {"DisplayName": f"{self.stack}-{team}", "ProviderName": "platform"}),
                f"Offered{team}": ("PortfolioProductAssociation", there),
                f"Who{team}": ("PortfolioPrincipalAssociation", {"PortfolioId": there["PortfolioId"], **who}),
                f"Launch{team}": ("LaunchRoleConstraint", {**there, "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}),
                f"Rule{team}": (
                    "LaunchTemplateConstraint",
                    {**there, "Rules": json.dumps({"Team": {"Assertions": [assertion]}})},
                ),
            }
        after = {"DependsOn": ["Offered", *(f"Offered{team}" for team in self.teams)]}
        made: dict[str, object] = {
            name: {
                "Type": f"AWS::ServiceCatalog::{kind}",
                "Properties": properties,
                **(after if kind.endswith("Constraint") else {}),
            }
            for name, (kind, properties) in resources.items()
        }
        made["Role"] = {"Type": "AWS::IAM::Role", "Properties": role}
        return {"Resources": made, "Outputs": {"Product": {"Value": {"Ref": "Product"}}}}

    def _more(self) -> list[dict[str, object]]:
        return [{"Effect": "Allow", "Action": [*self.more_rights], "Resource": "*"}] if self.more_rights else []

    def user(self, name: str, policy: dict[str, object] | None = None) -> boto3.Session:
        """Return the session of a new user with a policy; that of an end user by default."""
        self.iam.create_user(UserName=name)
        self.iam.put_user_policy(UserName=name, PolicyName="all", PolicyDocument=json.dumps(policy or ALL))
        key = self.iam.create_access_key(UserName=name)["AccessKey"]
        return boto3.Session(key["AccessKeyId"], key["SecretAccessKey"], region_name="us-east-1")

    def client(self, session: boto3.Session, service: str = "servicecatalog") -> Client:
        return session.client(service, endpoint_url=self.laptop.local.endpoint_url)  # type: ignore[call-overload]

    def launch(self, catalog: Client, product: str, version: str, **parameters: str) -> str:
        """Launch a product under its team's name and return how that ended."""
        record = catalog.provision_product(
            ProductId=product,
            ProvisioningArtifactName=version,
            ProvisionedProductName=f"{self.stack}-{parameters['Team']}",
            ProvisioningParameters=[{"Key": key, "Value": value} for key, value in parameters.items()],
        )["RecordDetail"]
        return self.ended(catalog, record)

    @staticmethod
    def ended(catalog: Client, record: dict[str, Any]) -> str:
        deadline = time.monotonic() + LONGEST_S
        while time.monotonic() < deadline:
            detail = catalog.describe_record(Id=record["RecordId"])["RecordDetail"]
            if detail["Status"] != "IN_PROGRESS":
                return "".join([detail["Status"], *(f": {each['Description']}" for each in detail["RecordErrors"])])
            time.sleep(0.05)
        return "too slow"


def _mapping(given: object) -> dict[str, object]:
    assert isinstance(given, dict)
    return given


@pytest.fixture
def shop(laptop: Laptop) -> Iterator[Shop]:
    """Return a portfolio of its own; what was offered is removed again."""
    shop = Shop(laptop)
    yield shop
    laptop.cloudformation.delete_stack(StackName=shop.stack)


def refusal(call: Callable[[], object]) -> str:
    with pytest.raises(ClientError) as refused:
        call()
    error = refused.value.response["Error"]
    return f"{error['Code']}: {error['Message']}"


def test_only_principals_of_a_portfolio_find_its_products(shop: Shop) -> None:
    product = shop.offer("1.0.0")
    ours, others = shop.client(shop.user(f"{shop.stack}-a")), shop.client(shop.user(f"other-{shop.stack}"))
    assert [each["ProductId"] for each in ours.search_products()["ProductViewSummaries"]] == [product]
    assert others.search_products()["ProductViewSummaries"] == []
    assert refusal(lambda: others.describe_product(Id=product)) == (
        f"ResourceNotFoundException: Product {product} not found."
    )
    asked = ours.describe_provisioning_parameters(ProductId=product, ProvisioningArtifactName="1.0.0")
    assert [each["ParameterKey"] for each in asked["ProvisioningArtifactParameters"]] == ["Team", "Value"]


def test_a_user_may_do_what_its_policies_allow(shop: Shop) -> None:
    allowed = {"Effect": "Allow", "Action": ["ssm:PutParameter", "ssm:GetParameter"], "Resource": "*"}
    denied = {"Effect": "Deny", "Action": "ssm:PutParameter", "Resource": "*"}
    session = shop.user(shop.laptop.name("user"), {"Statement": [allowed, denied]})
    ssm, catalog, sagemaker = (shop.client(session, each) for each in ("ssm", "servicecatalog", "sagemaker"))
    put = {"Name": "/own", "Type": "String", "Value": "v"}
    assert refusal(lambda: ssm.put_parameter(**put)).startswith("AccessDeniedException: User: arn:aws:iam::")
    assert refusal(lambda: ssm.get_parameter(Name="/none")).startswith("ParameterNotFound")
    assert "servicecatalog:SearchProducts" in refusal(catalog.search_products)
    assert "sagemaker:ListEndpoints" in refusal(sagemaker.list_endpoints)
    assert shop.client(session, "sts").get_caller_identity()["Arn"].startswith(f"arn:aws:iam::{ACCOUNT}:user/")


def test_what_is_launched_is_the_launchers_alone(shop: Shop) -> None:
    product = shop.offer("1.0.0")
    mine, yours = (shop.client(shop.user(f"{shop.stack}-{name}")) for name in ("a", "b"))
    name = f"{shop.stack}-x"
    assert shop.launch(mine, product, "1.0.0", Team="x") == "SUCCEEDED"
    assert mine.get_provisioned_product_outputs(ProvisionedProductName=name)["Outputs"][0]["OutputValue"] == "x"
    told = refusal(lambda: yours.terminate_provisioned_product(ProvisionedProductName=name))
    assert told == f"ResourceNotFoundException: Provisioned product {name} not found."
    assert refusal(lambda: shop.launch(mine, product, "1.0.0", Team="x")).startswith("InvalidParametersException")
    ended = mine.terminate_provisioned_product(ProvisionedProductName=name)["RecordDetail"]
    assert shop.ended(mine, ended) == "SUCCEEDED"
    assert refusal(lambda: mine.describe_provisioned_product(Name=name)).startswith("ResourceNotFoundException")


def test_a_resource_beyond_the_launch_role_rolls_the_launch_back(shop: Shop) -> None:
    product = shop.offer("1.0.0", rights="/vended/*/x")
    catalog = shop.client(shop.user(f"{shop.stack}-a"))
    failed = shop.launch(catalog, product, "1.0.0", Team="y")
    assert failed.startswith("FAILED: P: ")
    assert "is not authorized to perform: ssm:PutParameter on resource: arn:aws:ssm:us-east-1:" in failed
    detail = catalog.describe_provisioned_product(Name=f"{shop.stack}-y")["ProvisionedProductDetail"]
    assert detail["Status"] == "ERROR"


def test_a_new_version_leaves_the_others_and_what_was_launched_alone(shop: Shop) -> None:
    product = shop.offer("1.0.0")
    catalog = shop.client(shop.user(f"{shop.stack}-a"))
    before = catalog.list_provisioning_artifacts(ProductId=product)["ProvisioningArtifactDetails"]
    assert shop.launch(catalog, product, "1.0.0", Team="x") == "SUCCEEDED"
    assert shop.offer("1.0.0", "2.0.0") == product
    after = catalog.list_provisioning_artifacts(ProductId=product)["ProvisioningArtifactDetails"]
    assert [each["Id"] for each in after][:1] == [each["Id"] for each in before]
    detail = catalog.describe_provisioned_product(Name=f"{shop.stack}-x")["ProvisionedProductDetail"]
    assert (detail["ProvisioningArtifactId"], detail["Status"]) == (before[0]["Id"], "AVAILABLE")


def test_a_deprecated_version_is_launched_no_more(shop: Shop) -> None:
    product = shop.offer("1.0.0", "2.0.0")
    user = shop.client(shop.user(f"{shop.stack}-a"))
    old = shop.catalog.list_provisioning_artifacts(ProductId=product)["ProvisioningArtifactDetails"][0]["Id"]
    change = {"ProductId": product, "ProvisioningArtifactId": old, "Guidance": "DEPRECATED"}
    assert refusal(lambda: user.update_provisioning_artifact(**change)).startswith("AccessDeniedException")
    shop.catalog.update_provisioning_artifact(**change)
    assert "is deprecated" in refusal(lambda: shop.launch(user, product, "1.0.0", Team="x"))
    assert shop.launch(user, product, "2.0.0", Team="x") == "SUCCEEDED"


def test_constraints_hold_at_launch_and_update(shop: Shop) -> None:
    assertion = {"Assert": {"Fn::Contains": [["x"], {"Ref": "Team"}]}, "AssertDescription": "no such team"}
    product = shop.offer(
        "1.0.0",
        LaunchTemplateConstraint={"Rules": json.dumps({"Team": {"Assertions": [assertion]}})},
        ResourceUpdateConstraint={"TagUpdateOnProvisionedProduct": "NOT_ALLOWED"},
    )
    catalog = shop.client(shop.user(f"{shop.stack}-a"))
    assert "no such team" in refusal(lambda: shop.launch(catalog, product, "1.0.0", Team="y"))
    assert shop.launch(catalog, product, "1.0.0", Team="x") == "SUCCEEDED"
    name = f"{shop.stack}-x"
    tags = [{"Key": "team", "Value": "y"}]
    told = refusal(lambda: catalog.update_provisioned_product(ProvisionedProductName=name, Tags=tags))
    assert told == "InvalidParametersException: Updating the tags of the provisioned product is not allowed."
    same = catalog.update_provisioned_product(ProvisionedProductName=name)["RecordDetail"]
    assert shop.ended(catalog, same) == "SUCCEEDED", "there is nothing to update"


def test_a_principal_of_a_team_launches_and_updates_for_that_team_alone(shop: Shop) -> None:
    shop.teams = ("search", "support")
    product = shop.offer("1.0.0")
    catalog = shop.client(shop.user(f"search-{shop.stack}"))
    paths = [each["Name"] for each in catalog.list_launch_paths(ProductId=product)["LaunchPathSummaries"]]
    assert paths == [f"{shop.stack}-search"]
    assert "not yours" in refusal(lambda: shop.launch(catalog, product, "1.0.0", Team="support"))
    assert shop.launch(catalog, product, "1.0.0", Team="search") == "SUCCEEDED"
    moved = [{"Key": "Team", "Value": "support"}]
    name = f"{shop.stack}-search"
    told = refusal(
        lambda: catalog.update_provisioned_product(ProvisionedProductName=name, ProvisioningParameters=moved)
    )
    assert "not yours" in told


def test_a_failed_update_keeps_the_parameters_of_the_stack(shop: Shop) -> None:
    product = shop.offer("1.0.0", rights="/vended/*/x")
    catalog = shop.client(shop.user(f"{shop.stack}-a"))
    assert shop.launch(catalog, product, "1.0.0", Team="x") == "SUCCEEDED"
    name = f"{shop.stack}-x"
    value = [{"Key": "Value", "Value": "w"}]
    for parameters, ended in (([{"Key": "Team", "Value": "y"}], "FAILED: P: "), (value, "SUCCEEDED")):
        record = catalog.update_provisioned_product(ProvisionedProductName=name, ProvisioningParameters=parameters)
        assert shop.ended(catalog, record["RecordDetail"]).startswith(ended)


def test_users_and_products_belong_to_the_account_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ACCOUNT_VARIABLE, "111111111111")
    given = Provisioned(name="n", product_id="p", artifact_id="a", portfolio_id="o", principal=root_arn())
    assert root_arn() == "arn:aws:iam::111111111111:root"
    assert given.stack_name.startswith("SC-111111111111-pp-")


def test_an_operation_that_is_not_executed_is_refused(shop: Shop) -> None:
    told = refusal(shop.catalog.list_portfolios)
    assert told == "InternalFailure: the embedded AWS has no ListPortfolios"


def test_a_product_with_a_key_is_launched_where_the_launch_role_may_grant_its_use(shop: Shop) -> None:
    key = boto3.client("kms").create_key()["KeyMetadata"]["Arn"]
    variant = {"VariantName": "main", "InstanceType": "ml.inf2.8xlarge", "InitialInstanceCount": 1}
    execution = f"arn:aws:iam::{ACCOUNT}:role/an-execution-role"
    properties = {"KmsKeyId": key, "ExecutionRoleArn": execution, "ProductionVariants": [variant]}
    config = {"Type": "AWS::SageMaker::EndpointConfig", "Properties": properties}
    shop.product = {"Parameters": PARAMETER["Parameters"], "Resources": {"P": config}}
    made = ("iam:PassRole", "sagemaker:CreateEndpointConfig", "sagemaker:DeleteEndpointConfig", "sagemaker:AddTags")
    user = shop.client(shop.user(f"{shop.stack}-a"))
    for number, missing in enumerate(("kms:DescribeKey", "kms:CreateGrant", "")):
        shop.more_rights = (*made, *("kms:DescribeKey", "kms:CreateGrant")[:number])
        product = shop.offer("1.0.0")
        ended = shop.launch(user, product, "1.0.0", Team=f"t{number}")
        assert (f"is not authorized to perform: {missing} on resource: {key}" in ended) is bool(missing), ended
    assert ended == "SUCCEEDED"
