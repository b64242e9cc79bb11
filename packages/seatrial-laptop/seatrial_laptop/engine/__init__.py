"""The local LLM engine: llama.cpp behind the contract of a SageMaker container, configured by the rendered files."""
