"""The examples, each run as a user would run it."""
