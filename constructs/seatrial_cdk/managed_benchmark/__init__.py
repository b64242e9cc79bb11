"""The managed benchmark: SageMaker's own benchmark job on the deployed endpoint, as an option beside the trial."""
