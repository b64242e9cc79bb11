"""The report's charts: what they show is decided and written here, the page draws it with Observable Plot."""
