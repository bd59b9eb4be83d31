"""The kernel of a device's units: its geometry, its code, its commands and its chain of waits, by what the units are.

Units in lock-step do what a command says (`compiler.matvec`, `compiler.chain`); others run microkernels of their own
(`compiler.hbm_pim`). What lowers operators, and what bounds them, asks here.
"""

from collections.abc import Mapping
from typing import Any

from compiler.chain import ChainParts, kernel_chain
from compiler.emission import Block
from compiler.geometry import PLAIN, Geometry, Packing, geometry
from compiler.hbm_pim.geometry import microkernel_chain, microkernel_geometry
from compiler.hbm_pim.kernel import MicrokernelKernel
from compiler.host_cost import host_work_ns
from compiler.matvec import MatVecKernel, Operands
from compiler.schedule import PoolShape
from configs.device import Host

RESULT_BYTES = 2


def geometry_on(
    pool: PoolShape,
    outputs: Any,
    inputs: Any,
    vectors: Any,
    *,
    segment_columns: Any,
    reuse: Any,
    registers: Any,
    order: Any,
    growing: bool = False,
    packed: Packing = PLAIN,
) -> Geometry:
    """Return the geometry of a kernel; registers decide all of it where units run microkernels."""
    if pool.runs_microkernels:
        return microkernel_geometry(pool, outputs, inputs, vectors)
    return geometry(
        pool,
        outputs,
        inputs,
        vectors,
        segment_columns=segment_columns,
        reuse=reuse,
        registers=registers,
        order=order,
        growing=growing,
        packed=packed,
    )


def kernel_body(shape: Geometry, operands: Operands, preactivate: bool) -> Block:
    """Return the generated code of a kernel."""
    if shape.runs_microkernels:
        return MicrokernelKernel(shape, operands, preactivate).emit()
    return MatVecKernel(shape, operands, preactivate).emit()


def chain_of(shape: Geometry, timing: Mapping[str, Any], preactivate: Any) -> ChainParts:
    """Return the chain of one kernel."""
    if shape.runs_microkernels:
        return microkernel_chain(shape, timing, preactivate)
    return kernel_chain(shape, timing, preactivate)


def values_of_result(pool: PoolShape) -> Any:
    """Return the values that leave a unit for one result: its sum, or the partial sums of its lanes."""
    return pool.lanes if pool.runs_microkernels else 1


def lane_sums_ns(results: Any, pool: PoolShape, host: Host) -> Any:
    """Return the host's time to add the lanes of so many results: their partial sums read, the sums written."""
    if not pool.runs_microkernels:
        return 0.0
    return host_work_ns(host, results * RESULT_BYTES * (pool.lanes + 1), results * (pool.lanes - 1))
