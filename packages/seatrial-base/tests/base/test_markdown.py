"""Texts of others in Markdown, read back by a Markdown parser: shown as they are, wherever they stand."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from seatrial_base.text import code, escaped, fenced, folded, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

WORD_JOINER = "\N{WORD JOINER}"
# Escapes stay tokens of their own, so that a bare link can be told from an escaped one.
PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
PLACES = {
    "paragraph": "{}",
    "sentence": "A word, {}, and others.",
    "item": "- {}",
    "quote": "> {}",
    "heading": "## {}",
    "emphasis": "**because {}.**",
    "lines": "before\n{}\nafter",
    "row": "| a | b |\n| --- | --- |\n| {} | last |\n",
    "head": "| {} | b |\n| --- | --- |\n| a | last |\n",
}
HARMLESS = {"paragraph", "heading", "bullet_list", "list_item", "blockquote", "strong", "inline", "text", "softbreak"}
TABLE = {"table", "thead", "tbody", "tr", "th", "td"}
CODE = {"code_inline", "html_inline"}
FRAGMENTS = (
    "<script>alert(1)</script>", "<!--", "-->", "<img src=x>", "<https://e.example>", "<a@e.example>", "&lt;", "&#64;",
    "[x](http://e.example)", "![x](http://e.example)", "[x]: http://e.example", "[x]", "http://e.example",
    "HTTPS://e.example", "ftp://e.example", "www.e.example", "WWW.e.example", "a@e.example", "mailto:a@e.example",
    "@everyone", "@", "team", "#12", "GH-1", "`", "``", "```", "~~~", "~~x~~", "|", "\\", "\\|", "\\`", "|---|", "---",
    "===", "- ", "+ ", "* ", "1. ", "1) ", "# ", "> ", "**", "__", "_", "$x$", "{}", "\n", "\r\n", "\n\n", "    ", "\t",
    "\x1b[31m", "\x00", "\u202e", "\u2028", " ", "a", "</details>", "</summary>", "</code>", "<br>",
)  # fmt: skip
HOSTILE = st.lists(st.one_of(st.sampled_from(FRAGMENTS), st.text(max_size=4)), max_size=8).map("".join)


def shown(text: str) -> str:
    """Return what a reader must see of a text."""
    return printable(" ".join(text.split()))


def flat(tokens: Sequence[Token]) -> Iterator[Token]:
    for token in tokens:
        yield token
        yield from flat(token.children or ())


def read(markdown: str) -> list[Token]:
    return list(flat(PARSER.parse(markdown)))


def kinds(tokens: Sequence[Token]) -> set[str]:
    return {re.sub(r"_(open|close|special)$", "", token.type) for token in tokens}


def visible(tokens: Sequence[Token]) -> str:
    return "".join(token.content for token in tokens if token.type in {"text", "text_special", "code_inline"})


def mentioned(tokens: Sequence[Token]) -> list[str]:
    text = "".join(token.content if token.type in {"text", "text_special"} else "\n" for token in tokens)
    return re.findall(r"[@#](?=\w)", text)


def bare_links(tokens: Sequence[Token]) -> list[str]:
    return [token.content for token in tokens if token.type == "text" and re.search("(?i)://|www[.]", token.content)]


@pytest.mark.parametrize("place", PLACES)
@given(text=HOSTILE)
@example("<script>")
@example("[x](http://e) ![y](http://e)")
@example("@everyone")
def test_an_escaped_text_is_shown_as_it_is(place: str, text: str) -> None:
    frame = PLACES[place]
    tokens = read(frame.format(escaped(text)))
    assert kinds(tokens) <= HARMLESS | (TABLE if place in {"row", "head"} else set())
    assert not mentioned(tokens)
    assert not bare_links(tokens)
    rest = visible(read(frame.format("X"))).split("X")
    assert visible(tokens).replace(WORD_JOINER, "") == shown(text).join(rest)


@pytest.mark.parametrize("place", ["sentence", "item", "row", "head"])
@given(text=HOSTILE)
@example("a|b`c")
@example("@everyone` [x](http://e) `")
def test_a_text_in_code_does_not_leave_it(place: str, text: str) -> None:
    frame = PLACES[place]
    tokens = read(frame.format(code(text)))
    assert kinds(tokens) <= HARMLESS | CODE | (TABLE if place in {"row", "head"} else set())
    assert {token.content for token in tokens if token.type == "html_inline"} <= {"<code>", "</code>"}
    assert not mentioned(tokens)
    assert not bare_links(tokens)
    rest = visible(read(frame.format("X"))).split("X")
    assert visible(tokens).replace(WORD_JOINER, "") == (shown(text) or " ").join(rest)


@given(text=HOSTILE, another=HOSTILE)
def test_cells_stay_in_their_columns(text: str, another: str) -> None:
    row = f"| a | b | c |\n| --- | --- | --- |\n| {escaped(text)} | {code(another)} | {escaped(another)} |\n"
    assert sum(token.type == "td_open" for token in read(row)) == 3


@given(lines=st.lists(HOSTILE.map(lambda text: " ".join(text.splitlines())), max_size=4))
def test_lines_do_not_end_their_block_of_code(lines: list[str]) -> None:
    tokens = read("\n".join(fenced(lines, "diff")))
    assert [token.type for token in tokens] == ["fence"]


@given(title=HOSTILE)
def test_a_folded_part_shows_its_title_as_it_is(title: str) -> None:
    first, *rest = folded(title, ["body"])
    assert re.fullmatch(r"<details><summary>(?:[^<>]|</?code>)*</summary>", first)
    assert not re.search(r"@(?=\w)", first)
    assert rest == ["", "body", "</details>", ""]


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("ttft_ms p95 812.3 ms", "ttft_ms p95 812.3 ms"),
        ("a | b", r"a \| b"),
        ("<script>", r"\<script\>"),
        ("_all_ *of* `it`", r"\_all\_ \*of\* \`it\`"),
        ("[click](x) ![y](z)", r"\[click\](x) !\[y\](z)"),
        ("see http://a.example", r"see http\://a.example"),
        ("see www.a.example", r"see www\.a.example"),
        ("ask @admin", f"ask @{WORD_JOINER}admin"),
        ("as in #12", f"as in \\#{WORD_JOINER}12"),
        ("&lt; costs $5", r"\&lt; costs \$5"),
        ("two\nlines\tand a tab", "two lines and a tab"),
        ("\x1b[31mred", "�\\[31mred"),
        ("back\\slash", r"back\\slash"),
        ("- no item", r"\- no item"),
        ("1. no item", r"1\. no item"),
        ("-5 % of 1.5 GiB", "-5 % of 1.5 GiB"),
    ],
)
def test_what_is_plain_stays_readable(text: str, written: str) -> None:
    assert escaped(text) == written


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "`plain`"),
        ("a`b", "`` a`b ``"),
        ("a|b", r"<code>a\|b</code>"),
        ("@team\n<b>", "`@team <b>`"),
        ("", "` `"),
    ],
)
def test_code_is_written_with_the_fence_it_needs(text: str, written: str) -> None:
    assert code(text) == written
