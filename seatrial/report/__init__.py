"""The trial's report: one HTML page, one Markdown text, the result as JSON.

    document/  one module for each chapter, then the page and the Markdown of them
    charts/    the content of each chart, written in Python; draw.js draws it in the page with Observable Plot
    terminal/  plans and trials on a terminal
    values.py, planned.py  every number as it is shown, and its prediction

TrialResult, Plan ─▶ chapters (Section) ─▶ page (HTML), markdown
"""
