"""Prompts: their sources, and how long they and their answers are.

synthetic   made-up prompts of about so many tokens; calibrated by the endpoint's own count
jsonl       prompts, messages or whole bodies, one a line of a file
dataset     lengths and times of recorded requests, and what is wrong with the lines of any of these files
trace       recorded requests, to be replayed
choose      the source that a workload names
"""
