"""The trial's report for people and machines: one HTML page, one Markdown text, the result as JSON.

    document/  one module for each chapter, then the page and the Markdown of them
    charts/    what each chart shows, written in Python; draw.js draws it in the page with Observable Plot
    terminal/  plans and trials on a terminal
    values.py, planned.py  every number as it is shown, and what it is held against

TrialResult, Plan ─▶ chapters (Section) ─▶ page (HTML), markdown
"""
