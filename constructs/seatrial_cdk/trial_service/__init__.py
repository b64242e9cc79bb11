"""The smoke benchmark: a custom resource that puts the deployed endpoint through its sea trial."""
