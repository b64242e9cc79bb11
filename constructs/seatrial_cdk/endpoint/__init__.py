"""An endpoint of an LLM by props and by spec: model, instances, roles, updates, alias."""
