"""Reads a report's tables as a test needs them."""

from __future__ import annotations

from html.parser import HTMLParser
from typing import TypeAlias

VOID = {"meta", "br", "hr", "img", "link", "input"}
Shown: TypeAlias = tuple[str, str]


class Tables(HTMLParser):
    """Reads each table's body by its caption: (text, exact value) of every cell, without what stands in small below.

    Checks that tags are balanced.
    """

    def __init__(self, page: str) -> None:
        super().__init__()
        self.by_caption: dict[str, list[list[Shown]]] = {}
        self.open: list[str] = []
        self.caption = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        if tag == "caption":
            self.caption = ""
        elif tag == "tr" and "tbody" in self.open:
            self.by_caption.setdefault(self.caption, []).append([])
        elif tag in {"td", "th"} and "tbody" in self.open:
            self.by_caption[self.caption][-1].append(("", ""))
        elif tag == "data" and "tbody" in self.open and "small" not in self.open:
            row = self.by_caption[self.caption][-1]
            row[-1] = row[-1][0], dict(attrs)["value"] or ""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "caption" in self.open:
            self.caption += data
        elif "tbody" in self.open and {"td", "th"} & set(self.open) and "small" not in self.open:
            row = self.by_caption[self.caption][-1]
            row[-1] = (row[-1][0] + data).strip(), row[-1][1]
