from __future__ import annotations

import re
from pathlib import Path

import pytest

import seatrial.report.document

TEMPLATES = Path(seatrial.report.document.__file__).parent / "templates"
CSS = (TEMPLATES / "report.css").read_text(encoding="utf-8")
SCHEMES = dict(zip(("light", "dark", "print"), re.findall(r":root \{(.*?)\}", CSS, re.DOTALL), strict=True))
TEXTS = "text", "quiet", "good", "bad", "unknown", "knee"
SHAPES = "first", "second", "third", "predicted"


def luminance(colour: str) -> float:
    """Relative luminance, WCAG 2.2."""
    channels = (int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5))
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """Contrast ratio, WCAG 2.2: (lighter + 0.05) / (darker + 0.05)."""
    dark, light = sorted((luminance(one), luminance(other)))
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_text_has_the_contrast_of_wcag_aa(scheme: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", SCHEMES[scheme]))
    for text in TEXTS:
        for ground in ("paper", "panel", "caution"):
            assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_curve_has_the_contrast_of_wcag_graphics(scheme: str) -> None:
    colours = dict(re.findall(r"--([\w-]+): (#[0-9a-f]{6});", SCHEMES[scheme]))
    for shape in SHAPES:
        assert contrast(colours[shape], colours["paper"]) >= 3, shape


def test_the_legend_tells_curves_apart_by_dash_as_well_as_colour() -> None:
    styles = {shape: re.search(rf"\.legend \.{shape}::before {{(.*?)}}", CSS) for shape in SHAPES}
    told = [tuple(re.findall(r"border-top-(?:style|width): ([\w.]+);", style[1])) for style in styles.values() if style]
    assert len(set(told)) == len(SHAPES)


def test_the_template_only_loops_asks_and_fills_in() -> None:
    template = (TEMPLATES / "report.html.j2").read_text(encoding="utf-8")
    words = {word.removeprefix("end") for word in re.findall(r"\{%-?\s*(\w+)", template)}
    assert words == {"for", "if", "else", "macro", "include"}
    assert "|" not in template
