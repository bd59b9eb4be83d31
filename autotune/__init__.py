"""The search over devices and schedules together: proposing, evaluating, recording, reporting, and the command line."""
