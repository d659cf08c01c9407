"""The federation: the handle that methods use, messages, engines, and the logs that survive a crash."""
