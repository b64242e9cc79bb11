"""Both of SageMaker's paths to one endpoint of the embedded AWS, side by side with a peer's load generator."""
