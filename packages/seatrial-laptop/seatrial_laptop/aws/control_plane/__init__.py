"""SageMaker's control plane: models, endpoints, inference components and their records."""
