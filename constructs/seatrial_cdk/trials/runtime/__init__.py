"""The one Lambda function of an environment's trials; it needs boto3 and `seatrial_load` only.

`handler` dispatches its tasks: a request of CloudFormation (`custom_resource`), a step of the workflow (`steps`), a
share of a level's load (`load_worker_share`), and an execution that died.
"""
