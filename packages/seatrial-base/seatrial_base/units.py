"""Units and how numbers are written for users: the one home of factors and formats."""

from __future__ import annotations

GIB = 2**30
MIB = 2**20
GB = 10**9
MS_PER_S = 1_000.0
S_PER_HOUR = 3_600.0
S_PER_MINUTE = 60.0
BLENDED_TOKENS_PER_OUTPUT_TOKEN = 4  # three input tokens to one output token: the articles' blended price


def as_number(value: object) -> float | None:
    """Return the number that a value is or a text holds; `None` where it is none."""
    try:
        return float(str(value))
    except ValueError:
        return None


def counted(number: int, noun: str, plural: str = "") -> str:
    """Write a number with its noun: `1 copy`, `2 copies`, `1,024 tokens`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


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


def exported(value: float) -> str:
    """Write a number that another program reads, such as an attribute of a custom resource: six significant digits."""
    return f"{value:.6g}"


def as_exported(value: float) -> float:
    """Round a number to what `exported` writes, so that the one who decides it and the one who reads it hold the same.

    3 x 0.8 is 2.4000000000000004 in binary; what is exported and read again is 2.4.
    """
    return float(exported(value))


def tenths(value: float, *, grouped: bool = False) -> str:
    """Write a measured number with one decimal, below 0.1 with two digits: `1234.5`, `12.3`, `0.012`; only 0 is `0.0`.

    `grouped`: set commas between thousands: `1,234.5`.
    """
    if 0 < abs(value) < 0.1:  # noqa: PLR2004 (one decimal says nothing below it)
        return f"{value:.2g}"
    return f"{value:,.1f}" if grouped else f"{value:.1f}"


def whole_or_tenths(value: float) -> str:
    """Write a load in requests in flight: a whole number as it is, any other with one decimal: `16`, `12.4`."""
    return f"{value:.0f}" if round(value, 1) == round(value) else f"{value:.1f}"


def fine_percent(share: float) -> str:
    """Write a share in percent, two decimals, below 0.01 % two digits: `12.50 %`, `0.0025 %`; only 0 is `0.00 %`."""
    percent = share * 100
    return f"{percent:.2g} %" if 0 < abs(percent) < 0.01 else f"{percent:.2f} %"  # noqa: PLR2004 (two decimals)


def digits(value: float) -> str:
    """Write a number with the digits that a measurement deserves: `12,340`, `1,234`, `123`, `12.3`, `1.23`, `0.012`."""
    magnitude = abs(value)
    if magnitude >= 100:  # noqa: PLR2004 (three digits)
        return f"{value:,.0f}"
    if magnitude >= 10:  # noqa: PLR2004 (likewise)
        return f"{value:.1f}"
    if magnitude >= 1 or magnitude == 0:
        return f"{value:.2f}" if magnitude else "0"
    return f"{value:.2g}"


UNKNOWN = "?"


def short(value: float | None, otherwise: str = UNKNOWN) -> str:
    """Write a number with about three digits; something else where it is unknown."""
    return otherwise if value is None else digits(value)


def hourly_words(usd_per_hour: float | None, discount: float) -> str:
    """Write a price per hour as users read it, with the discount that it has."""
    if usd_per_hour is None:
        return "an unknown price"
    off = f" ({discount:.0%} off the list price)" if discount else ""
    return f"{usd(usd_per_hour)} per hour{off}"


def minutes(seconds: float) -> str:
    """Write a time as minutes and seconds, below a minute as seconds: `2 s`, `1:05 min`."""
    whole = round(seconds)
    if whole < S_PER_MINUTE:
        return f"{whole} s"
    return f"{whole // int(S_PER_MINUTE)}:{whole % int(S_PER_MINUTE):02d} min"
