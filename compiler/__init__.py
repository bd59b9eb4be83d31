"""From a model to programs: capture, raise to the graph, rewrite, split into tasks, schedule and lower."""
