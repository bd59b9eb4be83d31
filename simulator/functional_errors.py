"""What a program can do wrong on stored values; each message names the command, what was expected and found."""

from simulator.channel import IllegalProgram


class FunctionalError(IllegalProgram):
    """Raised when a program cannot be executed on values: the common parent of the cases below."""


class UnwrittenValueError(FunctionalError):
    """Raised when storage, global buffer, accumulator or host memory is read before anything was written there."""


class RowStateError(FunctionalError):
    """Raised when a command meets a closed row, another open or latched row, or an open row where none is due."""


class ModeError(FunctionalError):
    """Raised when a register command is issued in memory mode, or any other command in register mode."""


class OperandRangeError(FunctionalError):
    """Raised when an operand lies outside what the channel or the host memory has."""


class EventError(FunctionalError):
    """Raised when a command takes host data that no WAIT has waited for, or changes a result already handed over."""


class UnsupportedCommandError(FunctionalError):
    """Raised when a command has no functional meaning yet."""
