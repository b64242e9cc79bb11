"""Workloads that need more than the bench carries into a Lambda function: prompts of exactly so many tokens.

tokenizer   a `tokenizer.json` into a function that counts tokens
exact       a text of exactly so many tokens, verified
write       a file of such prompts, for `workload.source: jsonl`
"""
