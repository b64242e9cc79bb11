"""Which model served since when, under which licence and on what evidence: the records of deployments, verified."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import asdict, dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from seatrial.account.reader import aws_failures
from seatrial.account.trials import describe_stack
from seatrial.deployment.document import service_stack
from seatrial.deployment.evidence import verifies
from seatrial.specs.load import environment_names, load_environment
from seatrial_base.errors import BenchError, SeatrialError, SpecError
from seatrial_base.files import read_text
from seatrial_base.findings import Finding, Place
from seatrial_base.table import Column, aligned_lines, table_of
from seatrial_load.documents.served_record import UNKNOWN, ServedRecord
from seatrial_load.documents.strict_json import read_document

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from mypy_boto3_cloudformation import CloudFormationClient
    from mypy_boto3_s3 import S3Client

    from seatrial.specs.environment import EnvironmentSpec

Texts: TypeAlias = "tuple[tuple[str, str], ...]"
"""Records as they were written, each behind the place where it lies."""
Row: TypeAlias = "Mapping[str, str | None]"
WHO: Final = ("commit", "run", "actor", "approver")
"""What a CI says of itself in the name of its change set, in this order: `ci--COMMIT--RUN--ACTOR--APPROVER`."""
DAY: Final = len("2027-01-31")


@dataclass(frozen=True, slots=True)
class ServedInterval:
    """One record with what is known of it.

    Attributes:
        signature: `no key` where no public key of its environment is known.
        until: When the next record of the same model of the endpoint was written; None while it serves.
    """

    record: ServedRecord
    where: str
    signature: Literal["verified", "forged", "unsigned", "no key"]
    until: str | None = None

    def row(self) -> Row:
        """Return it flat; what nothing tells is `unknown`."""
        record = asdict(self.record)
        model, _ = record.pop("served"), record.pop("seal")
        head, *words = self.record.change_set.partition("/")[2].partition("/")[0].split("--")
        who = dict.fromkeys(WHO, UNKNOWN) | dict(zip(WHO, words if head == "ci" else (), strict=False))
        times = {"from": record.pop("at"), "to": self.until}
        return {**times, **model, **record, **who, "signature": self.signature, "record": self.where}


def records_of_files(path: Path) -> Texts:
    """Read the records of a folder, or of a file with one a line.

    Raises:
        SpecError: SEA587 when there is none, or a file can't be read.
    """
    files = sorted(path.rglob("*.json")) if path.is_dir() else [path]
    try:
        texts = [(file.as_posix(), line) for file in files for line in read_text(file).splitlines() if line.strip()]
    except (OSError, ValueError) as error:
        raise SpecError.of("SEA587", f"can't be read: {error}", where=path.as_posix()) from error
    if not texts:
        hint = "copy the bucket of records: aws s3 sync s3://BUCKET FOLDER"
        raise SpecError.of("SEA587", "there is no record", where=path.as_posix(), hint=hint)
    return tuple(texts)


def records_of_account(environment: EnvironmentSpec, name: str, stacks: CloudFormationClient, s3: S3Client) -> Texts:
    """Read the records of an endpoint from the bucket of its environment, every version: a later one hides none.

    Raises:
        BenchError: SEA502 when the trial service is not deployed, SEA587 when it keeps no records or they can't be
            read; as `aws_failures`.
    """
    stack = service_stack(environment.name)
    bucket = describe_stack(stack, stacks).outputs.get("RecordsBucket")
    if bucket is None:
        hint = f"set audit in the environment {environment.name}, and deploy; what served before has no record"
        raise BenchError.of("SEA587", "it keeps no records of what serves", where=stack, hint=hint)
    where, hint = f"s3://{bucket}", "the caller needs s3:ListBucketVersions and s3:GetObjectVersion on it"
    with aws_failures(where, lambda error: BenchError.of("SEA587", f"{error}", where=where, hint=hint)):
        pages = s3.get_paginator("list_object_versions").paginate(Bucket=bucket)
        versions = [(each["Key"], each["VersionId"]) for page in pages for each in page.get("Versions", ())]
        return tuple(
            (f"{where}/{key}", s3.get_object(Bucket=bucket, Key=key, VersionId=version)["Body"].read().decode())
            for key, version in versions
            if name in key.split("/")[:2]
        )


def known_keys(environments: Path) -> dict[str, tuple[str, ...]]:
    """Return the public keys of each environment: those that the environments after it trust.

    Raises:
        SpecError: With every problem of an environment's file.
    """
    known: dict[str, tuple[str, ...]] = defaultdict(tuple)
    for promotion in (load_environment(environments, name).promotion for name in environment_names(environments)):
        if promotion.source is not None:
            known[promotion.source] += promotion.public_keys
    return known


def audited(
    texts: Texts, name: str, keys: Mapping[str, tuple[str, ...]], given: Sequence[str] = ()
) -> tuple[tuple[ServedInterval, ...], tuple[Finding, ...]]:
    """Return what served as an endpoint in the order of time, and what is wrong with its records.

    Args:
        name: The endpoint's name in its spec, or on SageMaker.
        keys: Public keys by environment.
        given: Further public keys, of any environment.
    """
    served: list[ServedInterval] = []
    problems: list[Finding] = []
    for text, where in {text: where for where, text in texts}.items():
        try:
            record = read_document(ServedRecord, text, where=where)
            datetime.fromisoformat(record.at).astimezone(UTC)
        except (SeatrialError, ValueError, OverflowError) as error:
            problems.append(Finding("SEA587", Place.at(where), f"it is no record: {error}"))
            continue
        if name in {record.served.endpoint, record.endpoint_name}:
            known = (*keys.get(record.served.environment, ()), *given)
            signed = record.seal is not None and any(verifies(key, text, record.seal.signature) for key in known)
            unproven: Literal["forged", "no key"] = "forged" if known else "no key"
            state = "unsigned" if record.seal is None else "verified" if signed else unproven
            served.append(ServedInterval(record, where, state))
    served.sort(key=lambda each: datetime.fromisoformat(each.record.at))
    problems += (problem for each in served for problem in _unproven(each))
    return tuple(_until(served)), tuple(problems)


def _unproven(served: ServedInterval) -> Iterator[Finding]:
    place, environment = Place.at(served.where), served.record.served.environment
    if served.signature == "unsigned":
        hint = "see the log of the trial service for why its key did not sign"
        yield Finding("SEA588", place, "the record is not signed", hint)
    elif served.signature == "forged":
        message = f"the signature is not that of a known key of {environment} over this record: it may be made up"
        hint = "read the bucket's own versions; after a change of the key give the former one with --public-key"
        yield Finding("SEA588", place, message, hint)


def _until(served: Sequence[ServedInterval]) -> Iterator[ServedInterval]:
    """Yield what served with its end; a forged record ends nothing."""
    ends: dict[tuple[str, ...], str] = {}
    intervals: list[ServedInterval] = []
    for each in reversed(served):
        record = each.record
        model = (record.served.environment, record.endpoint_name, record.served.endpoint)
        if record.change != "delete":
            intervals.append(ServedInterval(record, each.where, each.signature, ends.get(model)))
        if each.signature != "forged":
            ends[model] = record.at
    yield from reversed(intervals)


def served_at(served: Iterable[ServedInterval], date: str) -> tuple[ServedInterval, ...]:
    """Return what served at a time, or on a day, in UTC.

    Raises:
        SpecError: SEA589 when it is neither.
    """
    try:
        begin = datetime.fromisoformat(date)
        begin = begin if begin.tzinfo else begin.replace(tzinfo=UTC)
        end = begin + timedelta(days=1, microseconds=-1) if len(date) <= DAY else begin
    except (ValueError, OverflowError) as error:
        hint = "as in 2027-01-31, or 2027-01-31T14:00:00Z"
        raise SpecError.of("SEA589", f"{date} is no date", where="command line", field="--at", hint=hint) from error
    time = datetime.fromisoformat
    return tuple(
        each for each in served if time(each.record.at) <= end and (each.until is None or time(each.until) > begin)
    )


def audit_lines(rows: Sequence[Row]) -> Iterator[str]:
    """Yield what served as text: model, licence and times in a table, then the evidence of each."""
    shown = ("from", "to", "environment", "endpoint_name", "model", "revision", "licence", "verdict", "signature")
    cells = ([row[name] or "serves" for name in shown] for row in rows)
    yield from aligned_lines(table_of([Column(name) for name in shown], cells))
    for row in rows:
        yield f"\n{row['from']} {row['change']} of {row['endpoint_name']}"
        yield from (
            f"  {name}: {value}"
            for name, value in row.items()
            if value not in {None, "", UNKNOWN, row["change"]} and name not in shown
        )
        yield f"  unknown: {', '.join(name for name, value in row.items() if value == UNKNOWN)}"
