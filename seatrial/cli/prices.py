"""`seatrial prices`: the team's prices of SageMaker instance types."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from seatrial.specs.prices import RegionPrices, TeamPrices
    from seatrial_base.errors import SeatrialError

prices = typer.Typer(name="prices", help="Prices of instance types: read them from AWS.", no_args_is_help=True)
NOT_ALL = 1


@prices.callback()
def _prices() -> None:
    """Prices of instance types: read them from AWS."""


@prices.command("refresh")
def refresh(
    region: Annotated[
        list[str] | None,
        typer.Option("--region", metavar="REGION", help="Only this region; repeat for more. Default: all in use."),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Prices file; prices.yaml next to the environments.")
    ] = None,
    environments: Annotated[Path, typer.Option("--environments", metavar="DIR", help="Folder of environments.")] = Path(
        "environments"
    ),
) -> None:
    """Read the prices of Hosting from AWS into the team's prices file.

    Needs pricing:GetProducts, and savingsplans:DescribeSavingsPlansOfferingRates for Savings Plans. The regions of the
    environments and of the file are read. A region that can't be read keeps the prices that it has, and the exit code
    is 1.
    """
    from seatrial.specs.prices import prices_path

    file = output or prices_path(environments, None)
    before = _before(file)
    from seatrial.specs.load import environment_names, load_environment

    used = (load_environment(environments, name).region for name in environment_names(environments))
    wanted = sorted(set(region or (*before.regions, *used)))
    if not wanted:
        raise typer.BadParameter(f"no environment in {environments.as_posix()}; give --region", param_hint="--region")
    from seatrial.specs import shapes

    wrong = [name for name in wanted if not re.match(shapes.REGION, name)]
    if wrong:
        raise typer.BadParameter(f"{', '.join(wrong)}: not a region such as us-east-1", param_hint="--region")
    read, failed = _read(wanted)
    if read:
        write_prices(file, read)
    for name in failed:
        kept = ", its old prices are kept" if name in before.regions else ""
        typer.echo(f"{name}: not read{kept}", err=True)
    if failed:
        raise typer.Exit(NOT_ALL)


def _before(file: Path) -> TeamPrices:
    from seatrial.specs.load import read_prices
    from seatrial.specs.prices import TeamPrices
    from seatrial_base.errors import SpecError
    from seatrial_base.files import kind_of

    team_prices, problems = read_prices(file.parent, file.name) if kind_of(file) else (None, [])
    if problems:
        raise SpecError(problems)
    return team_prices or TeamPrices(schema_version="1")


def _read(regions: Sequence[str]) -> tuple[dict[str, RegionPrices], list[str]]:
    """Return the prices by region, and the regions that could not be read; every failure is printed."""
    import boto3
    from botocore.config import Config

    from seatrial.account.prices import PRICING_REGION, read_region, read_savings_plans
    from seatrial.account.reader import aws_failures
    from seatrial_base.errors import SeatrialError

    # AWS throttles a reader of many pages: more attempts than botocore makes by default.
    config = Config(retries={"mode": "standard", "max_attempts": 8})
    with aws_failures("AWS Price List"):
        pricing = boto3.client("pricing", region_name=PRICING_REGION, config=config)
        plans = boto3.client("savingsplans", region_name=PRICING_REGION, config=config)
    read: dict[str, RegionPrices] = {}
    failed = []
    for name in regions:
        try:
            region_prices = read_region(pricing, name)
        except SeatrialError as error:
            _tell(error)
            failed.append(name)
            continue
        try:
            rates = read_savings_plans(plans, name)
        except SeatrialError as error:
            _tell(error)
            typer.echo(f"{name}: written without Savings Plans rates", err=True)
            rates = {}
        listed = region_prices.usd_per_hour
        # A rate of a type without a list price is left out: there is nothing that it is a discount of.
        kept = {field: {kind: usd for kind, usd in each.items() if kind in listed} for field, each in rates.items()}
        read[name] = region_prices.model_copy(update=kept)
    return read, failed


def _tell(error: SeatrialError) -> None:
    from seatrial_base.secrets import redacted

    typer.echo(redacted(f"{error}"), err=True)


def write_prices(file: Path, read: dict[str, RegionPrices]) -> None:
    """Put the prices of regions into a file; those of others stay.

    Raises:
        SpecError: SEA101, it can't be read or written.
    """
    from seatrial.specs.prices import prices_text
    from seatrial_base.errors import SpecError
    from seatrial_base.files import changing, write_whole

    try:
        with changing(file):
            before = _before(file)
            merged = dict(before.regions)
            for name, region_prices in read.items():
                # AWS lists no prices of capacity blocks: the team has written them.
                blocks = before.regions[name].capacity_block_usd_per_hour if name in before.regions else {}
                merged[name] = region_prices.model_copy(update={"capacity_block_usd_per_hour": blocks})
            after = before.model_copy(update={"regions": dict(sorted(merged.items()))})
            write_whole(file, prices_text(after))
    except OSError as error:
        message = f"the prices can't be written: {error}"
        raise SpecError.of("SEA101", message, where=file.as_posix()) from error
    for name, region_prices in sorted(read.items()):
        typer.echo(f"{name}: {_changes(before.regions.get(name), region_prices)}")
    typer.echo(f"prices written to {file.as_posix()}", err=True)


def _changes(before: RegionPrices | None, after: RegionPrices) -> str:

    old = {} if before is None else before.usd_per_hour
    changed = [
        f"{name} {old[name]:g} to {price:g}"
        for name, price in after.usd_per_hour.items()
        if old.get(name, price) != price
    ]
    gone = [f"{name} gone" for name in old if name not in after.usd_per_hour]
    rates = len(after.savings_plan_usd_per_hour) + len(after.savings_plan_3y_usd_per_hour)
    summary = f"{len(after.usd_per_hour)} prices of {after.date}, {rates} Savings Plans rates"
    return "; ".join([summary, *changed, *gone])
