"""The trial's report for people and machines: one HTML page, one Markdown text, the result as JSON.

    document/  one module for each chapter, then the page and the Markdown of them
    charts/    what each chart shows, written in Python; draw.js draws it in the page with Observable Plot
    terminal/  plans and trials on a terminal
    values.py, table.py, metric_names.py, quantities.py  every number as it is shown

TrialResult, Plan ─▶ chapters (Section) ─▶ page (HTML), markdown
"""

from __future__ import annotations

from seatrial.report.document.markdown import render_markdown
from seatrial.report.document.page import render_html
from seatrial.report.write import Report, write_report

__all__ = ["Report", "render_html", "render_markdown", "write_report"]
