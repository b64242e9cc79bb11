"""The report as a document: one module for each chapter, then the page (HTML) and the short text (Markdown) of them."""
