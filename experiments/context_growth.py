"""What more context takes: the memory plan of plain mappings, and the patches of attention programs token by token.

python -m experiments.context_growth --model llama --context 4096 --tokens 4096
"""

import argparse

from autotune.exit_codes import run_to_exit_code
from autotune.hand_mapping import hand_mapping, overlapped_mapping
from autotune.problem_spec import import_workload
from compiler.attention import AttentionShape
from compiler.attention_lowering import AttentionLowering
from compiler.lowering import System
from compiler.memory.cache import with_room
from compiler.memory.planner import plan_of
from compiler.memory.report import report_lines
from compiler.patch.growth import GrowthPatch, attention_programs, grown, growth_patch, patch_sizes, print_patch
from compiler.schedule import AttentionSchedule
from configs.device import load_device
from configs.model_config import load_model_config
from simulator.instructions import program_size

MAPPINGS = {"hand": hand_mapping, "overlapped": overlapped_mapping}


def main() -> None:
    """Print the plan's report, the sizes of the patches, and a typical patch, for each mapping."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--hardware", default="gddr6-aim")
    parser.add_argument("--devices", type=int, default=1)
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--context", type=int, default=4096)
    parser.add_argument(
        "--tokens", type=int, default=4096, help="patches of so many tokens, within the maximum context"
    )
    options = parser.parse_args()
    workload = import_workload(options.model, options.batch, options.context)
    system = System(load_device(options.hardware), options.devices)
    model = load_model_config(options.model)
    for name, mapping in MAPPINGS.items():
        schedules = mapping(workload.schedulables, system)
        plan = plan_of(workload, schedules, system, model=model)
        print(f"--- {name} mapping", *report_lines(plan), sep="\n")
        maximum = plan.scenario.maximum_context
        for shape in with_room(workload, maximum, model.sliding_window).schedulables:
            schedule = schedules[shape.name]
            if isinstance(shape, AttentionShape) and isinstance(schedule, AttentionSchedule):
                start = AttentionLowering(shape, schedule, system.pool, system.devices, system.host)
                report_patches(start, min(options.tokens, shape.room - shape.tokens), system)


def report_patches(start: AttentionLowering, tokens: int, system: System) -> None:
    """Print the sizes of the patches of so many tokens, beside the programs they change, and the smallest patch."""
    dispatcher = system.device.dispatcher
    if dispatcher is None or tokens <= 0:
        return
    patches = [growth_patch(grown(start, count), grown(start, count + 1)) for count in range(tokens)]
    whole = sum(program_size(program) for program in attention_programs(start).values())
    print(patch_sizes(patches, dispatcher), f"whole programs {whole * dispatcher.instruction_bytes} B", sep="\n")
    changing = [patch for patch in patches if patch.edits]
    if changing:
        print(print_patch(min(changing, key=_size)))


def _size(patch: GrowthPatch) -> int:
    return patch.fields + patch.blocks


if __name__ == "__main__":
    run_to_exit_code(main)
