"""What a system executes for one decode step: phases on the host and on the channels, joined by the link.

A task is a tuple of phases in the order in which host, link and channels take them up; a phase starts when those it is
`after` have ended: by default the one before it, with an empty tuple as soon as the task may start. A `PimPhase` sends
chunks down the link; chunk i's arrival is event i, for which its program waits; signal i of the program sends chunk i
up. Channels are in lock-step and identical, so that one program stands for all of them; `active_channels` is how many
execute it on average. `owner` is the scheduled operator that a phase's time is booked on; `HOST_OWNER` books work that
no schedule changes.
"""

from dataclasses import dataclass

from simulator.isa import Program

HOST_OWNER = "host"


@dataclass(frozen=True, slots=True)
class HostPhase:
    """Work of the host processor; `launch` where it starts on data that has just arrived."""

    name: str
    owner: str
    work_ns: float
    launch: bool
    after: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True)
class PimPhase:
    """One program on the channels of every device; chunk sizes are bytes per device link."""

    name: str
    owner: str
    program: Program
    down_bytes: tuple[int, ...]
    up_bytes: tuple[int, ...]
    active_channels: float
    after: tuple[int, ...] | None = None


Phase = HostPhase | PimPhase


@dataclass(frozen=True, slots=True)
class TaskPhases:
    """A lowered task; it has ended when all its phases have."""

    task: str
    phases: tuple[Phase, ...]


@dataclass(frozen=True, slots=True)
class Step:
    """A decode step: operators in program order, each a task, waiting for the operators in its dependencies."""

    tasks: tuple[TaskPhases, ...]
    sequence: tuple[int, ...]
    dependencies: tuple[tuple[int, ...], ...]
