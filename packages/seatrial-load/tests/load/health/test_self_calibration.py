from __future__ import annotations

import os
import socket

import pytest

from seatrial_load.client.connection import Address, dialer, socket_addresses
from seatrial_load.client.event_loop import Wave, run_wave
from seatrial_load.decode.response import record_of
from seatrial_load.health.self_calibration import HOST, REQUEST, calibrate_client, null_server


def children() -> set[str]:
    with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:  # noqa: PTH123 (one line of the kernel)
        return set(file.read().split())


def test_the_null_server_sends_each_token_in_a_write_of_its_own() -> None:
    with null_server(tokens=5, gap_s=0.02) as port:
        address = Address(tls=False, host=HOST, port=port, path="/")
        wave = Wave(streams=2, requests=6, timeout_s=5, deadline_s=1e12)
        result = run_wave(wave, lambda _index: REQUEST, dialer(address, socket_addresses(address)))
    records = [record_of(exchange, stream=True) for exchange in result.exchanges]
    assert [(record.error, record.output_tokens) for record in records] == [(None, 5)] * 6
    assert all(record.ended_s - record.sent_s >= 5 * 0.02 for record in records)


def interrupted_server() -> None:
    with null_server(tokens=2, gap_s=0.01) as port:
        socket.create_connection((HOST, port), timeout=1).close()
        raise KeyboardInterrupt


def test_it_is_gone_after_the_block_even_after_an_interruption() -> None:
    before = children()
    with pytest.raises(KeyboardInterrupt):
        interrupted_server()
    assert children() == before


def test_a_small_calibration_has_every_number() -> None:
    calibration = calibrate_client(streams=8, tokens=20, gap_s=0.005, rounds=2)
    assert (calibration.streams, calibration.offered_parts_per_s) == (8, 1600.0)
    assert calibration.parts_per_s is not None
    assert calibration.parts_per_s > 0
    assert calibration.cpu_s_per_1k_parts is not None
    assert 0 < calibration.cpu_s_per_1k_parts < 1
    assert calibration.receive_lag_p99_ms is not None
    assert calibration.because == (
        "one process decoded 320 token events from a local test server over 8 connections (plain HTTP),"
        f" {calibration.cpu_s_per_1k_parts:.3f} CPU seconds per 1,000"
    )


def test_where_no_process_can_be_made_there_is_a_reason_instead_of_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", refuse)
    calibration = calibrate_client()
    assert (calibration.parts_per_s, calibration.cpu_s_per_1k_parts, calibration.receive_lag_p99_ms) == (
        None,
        None,
        None,
    )
    assert calibration.because == (
        "the client's speed could not be measured: [Errno 11] Resource temporarily unavailable"
    )
