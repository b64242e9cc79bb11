"""Prompts: their sources, and the lengths of them and of their answers.

synthetic   made-up prompts of about a number of tokens; calibrated by the endpoint's own count
jsonl       prompts, messages or whole bodies, one a line of a file
dataset     lengths and times of recorded requests, and the problems of the lines of any of these files
trace       recorded requests, to be replayed
choose      the source that a workload names
"""
