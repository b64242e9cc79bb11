"""Units and how numbers are written for people: the one home of factors and formats."""

from __future__ import annotations

GIB = 2**30
MIB = 2**20
GB = 10**9
MS_PER_S = 1_000.0
S_PER_HOUR = 3_600.0
S_PER_MINUTE = 60.0
BLENDED_TOKENS_PER_OUTPUT_TOKEN = 4  # three input tokens to one output token: the articles' blended price


def gib(size_bytes: float) -> str:
    """Write a number of bytes in GiB (2^30 bytes), one decimal: `13.1 GiB`."""
    return f"{size_bytes / GIB:,.1f} GiB"


def usd(amount: float) -> str:
    """Write an amount of US dollars with the digits that its size deserves: `$0.00031`, `$1.515`, `$7.09`, `$1,204`."""
    magnitude = abs(amount)
    if magnitude >= 1_000:  # noqa: PLR2004 (cents say nothing past a thousand dollars)
        return f"${amount:,.0f}"
    if magnitude >= 0.01 or magnitude == 0:  # noqa: PLR2004 (a cent is the smallest coin)
        text = f"${amount:,.3f}"
        return text.removesuffix("0")
    return f"${amount:.2g}"
