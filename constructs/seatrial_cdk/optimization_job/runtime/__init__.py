"""What starts, follows and reads optimization jobs: an AWS Lambda function with the standard library and boto3."""
