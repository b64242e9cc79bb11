"""Constructs for offering products: the launch role, the portfolio, the templates of projects."""
