from __future__ import annotations

import re
from xml.etree import ElementTree as ET

SVG = re.compile(r"<svg.*?</svg>", re.DOTALL)


def test_every_picture_is_well_formed_and_described(real_page: str) -> None:
    pictures = SVG.findall(real_page)
    assert len(pictures) == 4 + 3
    for picture in pictures:
        root = ET.fromstring(picture)  # noqa: S314 (our own text)
        named = {element.get("id"): element.text for element in root}
        assert root.get("role") == "img"
        assert all(named[name] for name in str(root.get("aria-labelledby")).split())


def test_every_id_is_unique(real_page: str) -> None:
    ids = re.findall(r' id="([^"]+)"', real_page)
    assert len(ids) == len(set(ids))


def test_the_knees_and_the_gate_are_marked_in_the_measured_panels(real_page: str) -> None:
    for picture in SVG.findall(real_page)[1:4]:
        assert ">knee (slo, kneedle) at 32<" in picture
        assert ">gate at 16<" in picture


def test_the_slo_is_drawn_where_it_binds(real_page: str) -> None:
    throughput, ttft, tpot = SVG.findall(real_page)[1:4]
    assert "SLO" not in throughput
    assert ">SLO p95 ≤ 2,000 ms<" in ttft
    assert ">SLO p95 ≤ 60 ms<" in tpot
