"""The meaning of a configuration to a container and to SageMaker, before anything is deployed."""
