"""What topics are good for: tasks that are done with a trained model."""
