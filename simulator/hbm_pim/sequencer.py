"""The microkernel of a channel's units: its words are loaded, execution is switched, and a counter tells what is next.

The program counter stays on an instruction for as many accesses as it takes; a jump takes none, and what is behind it
or where it leads is next.
"""

from simulator.functional_errors import FunctionalError, UnwrittenValueError
from simulator.hbm_pim.commands import Resolved
from simulator.hbm_pim.microkernel import ALIGNED_RUNS, MicroInstruction, Opcode, decode, words_of
from simulator.hbm_pim.registers import MICROKERNEL_COLUMN
from simulator.hbm_pim.state import COUNTER, EXECUTES, RUNS, MicrokernelChannel


def load_words(channel: MicrokernelChannel, command: Resolved) -> None:
    """Write the words of a microkernel that a command carries."""
    words = words_of(command.lane, command.buffer, command.register, command.data)
    first = (command.column - MICROKERNEL_COLUMN) * len(words)
    command.require_range("column", first + len(words) - 1, len(channel.words))
    channel.words[first : first + len(words)] = words


def switch_execution(channel: MicrokernelChannel, command: Resolved) -> None:
    """Switch execution on or off, which begins the microkernel anew, and perhaps clear the sums."""
    channel.standing[[EXECUTES, COUNTER, RUNS]] = (command.lane, 0, 0)
    channel.jumps[:] = -1
    if command.register:
        channel.sums[:] = 0


def next_instruction(channel: MicrokernelChannel, command: Resolved) -> MicroInstruction:
    """Return the instruction at the program counter, behind the jumps that lead there."""
    standing, jumps = channel.standing, channel.jumps
    while True:
        counter = int(standing[COUNTER])
        command.require_range("program counter", counter, len(channel.words))
        word = int(channel.words[counter])
        if word < 0:
            raise UnwrittenValueError(f"{command.where}: expected an instruction at {counter}, found none written")
        instruction = _decoded(command, word)
        if instruction.opcode is not Opcode.JUMP:
            return instruction
        if jumps[counter] < 0:
            jumps[counter] = instruction.count
        back = jumps[counter] > 0
        jumps[counter] -= 1
        standing[COUNTER] += -instruction.back if back else 1


def count_run(channel: MicrokernelChannel, instruction: MicroInstruction) -> None:
    """Count a run of the instruction; after its last one the program counter moves on."""
    standing = channel.standing
    standing[RUNS] += 1
    if standing[RUNS] == (ALIGNED_RUNS if instruction.aligned else instruction.count):
        standing[[COUNTER, RUNS]] = standing[COUNTER] + 1, 0


def _decoded(command: Resolved, word: int) -> MicroInstruction:
    try:
        return decode(word)
    except ValueError as error:
        raise FunctionalError(f"{command.where}: expected a known instruction, found {word:#010x}") from error
