"""The construct library: what an LLM endpoint on SageMaker is made of. Nothing is imported here (see runtime_code)."""
