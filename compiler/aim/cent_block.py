"""CENT's mapping of one transformer block, all of its operators in program order, as AiM instructions.

With no corrections it is the published generator, line by line; with all of them it is legal on the device.
"""

from compiler.aim.block import BlockOp, BlockShape, OpName, Placement
from compiler.aim.cent_corrections import ALL_CORRECTIONS, Correction
from compiler.aim.cent_norm import ALL_BANK_GROUPS, append, norm, rotary
from compiler.aim.cent_plan import CentPlan, cent_plan, configure
from compiler.aim.cent_products import contexts, linear, scores
from compiler.aim.cent_rows import require_rows
from compiler.aim.cent_scaling import gate_product, softmax
from simulator.aim.instructions import Instruction, Opcode


def cent_block(
    shape: BlockShape, place: Placement, corrections: frozenset[Correction] = ALL_CORRECTIONS
) -> tuple[BlockOp, ...]:
    """Return the operators; raises UserError when a corrected block needs more rows than a bank has."""
    plan = cent_plan(shape, place, corrections)
    if corrections == ALL_CORRECTIONS:
        require_rows(plan.rows, place)
    return (*_attention(plan), *_mlp(plan))


def _attention(plan: CentPlan) -> tuple[BlockOp, ...]:
    shape, rows = plan.shape, plan.rows
    all_groups = configure(plan, ALL_BANK_GROUPS, 0)
    first_norm = norm(plan, rows.x, rows.x_copy, rows.attention_norm, (0, 1))
    weights = (
        (rows.query_weight, shape.query_width),
        (rows.key_weight, shape.kv_width),
        (rows.value_weight, shape.kv_width),
    )
    return (
        BlockOp(OpName.ATTENTION_NORM, (*all_groups, *first_norm)),
        BlockOp(
            OpName.QUERY_KEY_VALUE,
            tuple(item for row, width in weights for item in linear(plan, row, shape.hidden, width)),
        ),
        BlockOp(OpName.ROTARY, tuple(rotary(plan))),
        BlockOp(OpName.APPEND, tuple(append(plan))),
        BlockOp(OpName.SCORES, tuple(scores(plan))),
        BlockOp(OpName.SOFTMAX, tuple(softmax(plan))),
        BlockOp(OpName.CONTEXT, tuple(contexts(plan))),
        BlockOp(
            OpName.ATTENTION_OUTPUT,
            (*linear(plan, rows.output_weight, shape.query_width, shape.hidden), _add(plan)),
        ),
    )


def _mlp(plan: CentPlan) -> tuple[BlockOp, ...]:
    shape, rows = plan.shape, plan.rows
    return (
        BlockOp(OpName.MLP_NORM, tuple(norm(plan, rows.residual_copy, rows.residual_copy, rows.mlp_norm, (1, 0)))),
        BlockOp(
            OpName.GATE_UP,
            (
                *linear(plan, rows.gate_weight, shape.hidden, shape.intermediate, activated=True),
                *linear(plan, rows.up_weight, shape.hidden, shape.intermediate),
            ),
        ),
        BlockOp(OpName.ACTIVATION, tuple(gate_product(plan))),
        BlockOp(
            OpName.DOWN,
            (*linear(plan, rows.down_weight, shape.intermediate, shape.hidden), _add(plan)),
        ),
    )


def _add(plan: CentPlan) -> Instruction:
    """Add the residual between general registers."""
    return Instruction(Opcode.EWADD, plan.place.columns_of(plan.shape.hidden))
