"""The rule book of SageMaker hosting: what an API refuses only at deployment, found in CloudFormation templates."""
