"""What bounds one copy, in words and as shares of a step."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from seatrial.report.terminal.tables import add_columns, add_row, heading, percent, table
from seatrial.report.values import digits

if TYPE_CHECKING:
    from rich.console import RenderableType

    from seatrial.predict.regime import Regime


def regime_view(regime: Regime) -> RenderableType:
    """Return the regime: its sentence, the numbers behind it, and where a step's time goes at each level."""
    shares = (heading("Share of step time"), _shares(regime)) if regime.per_level else ()
    return Group(heading("Regime"), Text(regime.sentence), Text(balance_sentence(regime)), *shares)


def balance_sentence(regime: Regime) -> str:
    """Say how much arithmetic a decode step does per byte, and from which batch on arithmetic would bound it."""
    return (
        f"A decode step at the gate does {digits(regime.arithmetic_intensity_flops_per_byte)} FLOPs for each byte it "
        f"reads; the accelerator balances at {digits(regime.machine_balance_flops_per_byte)}. Critical batch size: "
        f"{regime.critical_batch_size:,} sequences."
    )


def _shares(regime: Regime) -> RenderableType:
    made = table()
    parts = [name for name, _ in regime.per_level[0].share_of_step]
    add_columns(made, "right", ("concurrency", *parts))
    add_columns(made, "left", ("limited by",))
    for level in regime.per_level:
        shares = (percent(share) for _, share in level.share_of_step)
        add_row(made, f"{level.concurrency:,}", *shares, level.bound_by)
    return made
