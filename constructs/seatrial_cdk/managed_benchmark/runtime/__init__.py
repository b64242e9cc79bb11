"""The handlers of the managed benchmark's two Lambda functions; they need boto3 only.

`on_event` starts or stops the job and returns at once; `is_complete` asks how it fares until it is over.
"""
