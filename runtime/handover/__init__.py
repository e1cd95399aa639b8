"""What a parent gives its child beside the task, and what comes back beside the report's text."""
