"""The proxy does the same harm every time, so that a test may count it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.faults.order import HARMLESS, Order, five_percent, ten_percent

if TYPE_CHECKING:
    from tests.faults.proxy import Proxy

ORDERS = st.builds(
    Order,
    fault=st.text(),
    share=st.floats(0, 1),
    seed=st.integers(),
    skip=st.integers(0),
    most=st.none() | st.integers(0),
    ahead_s=st.floats(-1e6, 1e6),
    tells_date=st.booleans(),
    token=st.text(),
)


def test_the_same_numbers_are_drawn_every_time() -> None:
    assert [number for number in range(40) if five_percent("reset").draws(number)] == [13, 30]
    assert [number for number in range(44) if ten_percent("throttle").draws(number)] == [5, 12, 20, 37]
    assert [number for number in range(4) if Order(skip=2).draws(number)] == [2, 3]


@given(ORDERS)
@settings(max_examples=30)
def test_an_order_survives_its_way_to_the_proxy(order: Order) -> None:
    line = order.to_line()
    assert line.index("\n") == len(line) - 1
    assert Order.from_line(line) == order


def test_the_proxy_tells_what_it_did_under_the_order_before(proxy: Proxy) -> None:
    assert (proxy.obey(five_percent("reset")).hit, proxy.obey(HARMLESS).seen) == (0, 0)
