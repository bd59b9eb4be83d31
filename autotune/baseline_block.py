"""CENT's mapping of a transformer block against ours: same device, channels, model and constants, both replayed.

Cycles of the banks come from replays with the public AiM simulator's rules; accelerators and links are added by CENT's
model, never overlapped, on both sides.
"""

from dataclasses import dataclass

from autotune.block_replay import BlockCycles, replay_block
from autotune.own_choice import Chooser
from compiler.aim.block import BlockOp, BlockShape, Placement, block_shape, placement
from compiler.aim.cent_block import cent_block
from compiler.aim.cent_corrections import NO_CORRECTIONS, Correction
from compiler.aim.latency import OffBankTime, cent_time, lanes_of_device
from compiler.aim.own_block import OwnSchedules, own_block
from compiler.aim.own_latency import own_time
from configs.device import Device
from configs.model_config import ModelConfig
from simulator.aim.rules import rules_of


@dataclass(frozen=True, slots=True)
class Side:
    """One mapping: its operators, their cycles in the banks, and the time outside them."""

    ops: tuple[BlockOp, ...]
    banks: BlockCycles
    outside: OffBankTime

    @property
    def total(self) -> int:
        """Cycles of a block with accelerators and link."""
        return self.banks.total + self.outside.total


@dataclass(frozen=True, slots=True)
class CorrectionEffect:
    """What a correction changes: bank cycles of the operators it touches, replayed alone, with less without it.

    None stands for a correction that changes nothing at these sizes.
    """

    correction: Correction
    cycles: int | None


@dataclass(frozen=True, slots=True)
class Baseline:
    """The comparison; `published_cycles` are the banks' of CENT's generator without corrections.

    `cautious_total` is ours with CENT's rotary time of the cores charged besides our own.
    """

    shape: BlockShape
    place: Placement
    lanes: int
    cent: Side
    ours: Side
    cautious_total: int
    published_cycles: int
    corrections: tuple[CorrectionEffect, ...]
    schedules: OwnSchedules


def compare_block(config: ModelConfig, context: int, device: Device, channels: int, lanes: int = 0) -> Baseline:
    """Map, replay and compare; `lanes` of PCIe per device, 0 shares the host's over the devices of the model.

    Raises UserError for a model, a device or a number of channels that cannot be used.
    """
    rules = rules_of(device)
    shape, place = block_shape(config, context), placement(device, channels)
    lanes = lanes or lanes_of_device(config.layers, place)
    cycle_ns = device.nanoseconds(1)
    cent_ops, published = cent_block(shape, place), cent_block(shape, place, NO_CORRECTIONS)
    schedules = Chooser(shape, place, device, rules).schedules()
    own_ops = own_block(shape, place, device, schedules)
    own_banks = replay_block(own_ops, device)
    cautious = own_time(shape, place, schedules, cycle_ns, lanes, rotary_on_cores=True)
    return Baseline(
        shape=shape,
        place=place,
        lanes=lanes,
        cent=Side(cent_ops, replay_block(cent_ops, device), cent_time(shape, place, cycle_ns, lanes)),
        ours=Side(own_ops, own_banks, own_time(shape, place, schedules, cycle_ns, lanes)),
        cautious_total=own_banks.total + cautious.total,
        published_cycles=replay_block(published, device).total,
        corrections=correction_effects(shape, place, device),
        schedules=schedules,
    )


def correction_effects(shape: BlockShape, place: Placement, device: Device) -> tuple[CorrectionEffect, ...]:
    """Apply the corrections one after the other and measure each on the operators whose instructions it changes."""
    effects = []
    applied: frozenset[Correction] = NO_CORRECTIONS
    before = cent_block(shape, place, applied)
    for correction in Correction:
        applied |= {correction}
        after = cent_block(shape, place, applied)
        effects.append(CorrectionEffect(correction, _effect(before, after, device)))
        before = after
    return tuple(effects)


def _effect(before: tuple[BlockOp, ...], after: tuple[BlockOp, ...], device: Device) -> int | None:
    changed = [pair for pair in zip(before, after, strict=True) if pair[0] != pair[1]]
    if not changed:
        return None
    return sum(replay_block((new,), device).total - replay_block((old,), device).total for old, new in changed)
