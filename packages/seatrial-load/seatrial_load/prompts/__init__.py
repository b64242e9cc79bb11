"""What is asked: where prompts come from, and how long they and their answers are.

source      what every source tells of a request by its number
synthetic   made-up prompts of about so many tokens; calibrated by the endpoint's own count
jsonl       prompts, messages or whole bodies, one a line of a file
trace       times and lengths of recorded requests
choose      the source that a workload names
"""
