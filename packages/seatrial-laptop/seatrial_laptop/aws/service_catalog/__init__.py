"""A small AWS Service Catalog: portfolios, products and what is provisioned of them, as CloudFormation stacks."""
