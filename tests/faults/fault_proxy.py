"""A proxy of one HTTP service on the loopback that does harm on order: `python -m tests.faults.fault_proxy PORT`.

Its first line on stdout is the port where it listens. Each line on stdin is an order, answered with the tally of the
one before; it ends when stdin does. A process of its own, so that no fork of the client inherits its sockets.
"""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import asdict

from seatrial_laptop.loopback import HOST, LIMIT_BYTES, LoopbackError, read_request
from tests.faults.faults import FAULTS, concerns
from tests.faults.order import Order, Tally
from tests.faults.passage import Passage


class FaultProxy:
    """Carries requests to the upstream, each on a connection of its own."""

    def __init__(self, upstream_port: int) -> None:
        self._upstream_port = upstream_port
        self._order = Order()
        self._tally = Tally()

    def obey(self, order: Order) -> Tally:
        """Take the next order and return the tally of the one before."""
        self._order = order
        done, self._tally = self._tally, Tally()
        return done

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it goes away, or a fault ends the connection."""
        try:
            keep = True
            while keep:
                request = await read_request(reader)
                passage = Passage(request, self._order, self._upstream_port, reader, writer)
                keep = await FAULTS[self._fault_of(passage)](passage)
        except LoopbackError:
            pass  # the client went away, as clients do, or the upstream broke: it is passed on as a broken connection
        except ConnectionError:
            passage.reset()
        finally:
            writer.close()

    def _fault_of(self, passage: Passage) -> str:
        order, tally = passage.order, self._tally
        number, tally.seen = tally.seen, tally.seen + 1
        spent = order.most is not None and tally.hit >= order.most
        if order.fault == "pass_on" or spent or not order.draws(number) or not concerns(passage):
            return "pass_on"
        tally.hit += 1
        return order.fault


async def serve(upstream_port: int) -> None:
    proxy = FaultProxy(upstream_port)
    server = await asyncio.start_server(proxy.connected, HOST, 0, limit=LIMIT_BYTES, backlog=512)
    orders = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(orders), sys.stdin)
    async with server:
        _say(str(server.sockets[0].getsockname()[1]))
        while line := await orders.readline():
            _say(json.dumps(asdict(proxy.obey(Order.from_line(line.decode())))))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
