"""The trial's report for people and machines: one HTML page, one Markdown text, the result as JSON.

TrialResult, Plan ─▶ levels, judgement, curves, prediction, cost, provenance ─▶ Section ─▶ page (HTML), markdown
                     (every number is written here, in Python)                   ▲
                                                                   templates/: loops and holes only
"""

from __future__ import annotations

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial.report.write import Report, write_report

__all__ = ["Report", "render_html", "render_markdown", "write_report"]
