"""The CloudFormation resource types that MiniStack lacks."""
