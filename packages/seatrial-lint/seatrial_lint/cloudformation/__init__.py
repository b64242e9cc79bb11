"""CloudFormation templates: read from files, their functions evaluated, each value with its line."""
