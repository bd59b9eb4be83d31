"""What lies where: rows of banks for weights, embedding and caches, what still fits, and how long loading takes.

In the order of the flow: `rooms` (one copy of a tensor), `capacity` (their sum, as the search asks it), `plan` (the
records), `planner` (makes a plan), `cache` (room to grow), `held` (what takes no rows), `loading`, `check` (what every
plan keeps), `report`, `table_text` and `text` (written and read back).
"""
