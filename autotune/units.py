"""The units that people read: the one place where stored ns and pJ become ms and mJ."""

MS_PER_NS = 1e-6
MJ_PER_PJ = 1e-9
