from __future__ import annotations

import pytest

from seatrial_laptop.aws.runtime.download_rights import is_download_allowed

OBJECT = "arn:aws:s3:::bucket/models/chat/model.tar.gz"


def statement(**elements: object) -> dict[str, object]:
    return {"Effect": "Allow", "Action": "s3:GetObject", "Resource": OBJECT, **elements}


def allows(*statements: dict[str, object]) -> bool:
    return is_download_allowed([{"Statement": list(statements)}], "s3:GetObject", OBJECT)


@pytest.mark.parametrize(
    ("elements", "allowed"),
    [
        ({}, True),
        ({"Action": ["s3:ListBucket", "s3:Get*"]}, True),
        ({"Action": "S3:getobject"}, True),
        ({"Action": "s3:PutObject"}, False),
        ({"Action": "*"}, True),
        ({"Resource": "arn:aws:s3:::bucket/*"}, True),
        ({"Resource": "arn:aws:s3:::bucket/models/????/model.tar.gz"}, True),
        ({"Resource": "arn:aws:s3:::bucket/models/"}, False),
        ({"Resource": "arn:aws:s3:::BUCKET/*"}, False),
        ({"Resource": ["arn:aws:s3:::other/*", "*"]}, True),
        ({"Condition": {"Bool": {"aws:SecureTransport": "true"}}}, True),
    ],
)
def test_wildcards_of_actions_and_resources(elements: dict[str, object], *, allowed: bool) -> None:
    assert allows(statement(**elements)) is allowed


def test_the_negated_elements_name_all_others() -> None:
    assert allows({"Effect": "Allow", "NotAction": "iam:*", "Resource": "*"})
    assert not allows({"Effect": "Allow", "NotAction": "s3:*", "Resource": "*"})
    assert not allows({"Effect": "Allow", "Action": "s3:*", "NotResource": "arn:aws:s3:::bucket/*"})


def test_a_denial_wins_unless_it_has_a_condition() -> None:
    assert not allows(statement(), statement(Effect="Deny", Resource="arn:aws:s3:::bucket/models/*"))
    assert allows(statement(), statement(Effect="Deny", Resource="arn:aws:s3:::bucket/other/*"))
    assert allows(statement(), statement(Effect="Deny", Condition={"Bool": {"aws:SecureTransport": "false"}}))


def test_one_statement_needs_no_list_and_no_statement_allows_nothing() -> None:
    assert is_download_allowed([{"Statement": statement()}], "s3:GetObject", OBJECT)
    assert not is_download_allowed([{}, {"Statement": []}], "s3:GetObject", OBJECT)
