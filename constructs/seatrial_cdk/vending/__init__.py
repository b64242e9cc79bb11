"""What a platform team needs to offer products: the launch role, the portfolio, the templates of projects."""
