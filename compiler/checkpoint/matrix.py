"""A decoded linear layer: elements and scales, from which its values follow exactly."""

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from simulator.number_codes import Quantised

Floats = NDArray[np.float32]
Doubles = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class DecodedMatrix:
    """elements[n, k] (codes less zero points), and scales[block rows, block columns] of blocks of `block` elements.

    The last blocks may be ragged. Everything is multiplied by `tensor_scale`, too, a fp32 value or the reciprocal of
    one in fp64. `columns[k]` is the block column of each input: k // block[1], except that the act-order of GPTQ deals
    inputs to groups in any order.
    """

    elements: Floats
    scales: Floats
    block: tuple[int, int]
    tensor_scale: float = 1.0
    columns: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))

    def scale_of_each(self) -> Floats:
        """Return the scale of every element, float32[n, k], without that of the tensor."""
        rows = np.arange(self.elements.shape[0]) // self.block[0]
        return self.scales[np.ix_(rows, self._columns())]

    def values(self) -> Doubles:
        """Return element x scale x tensor scale in fp64, exactly unless the tensor's is a reciprocal.

        An element has at most 8 significant bits, a scale 24, or 4 where the tensor has one of 24, too: 36 of 53 bits.
        """
        return self.elements.astype(np.float64) * (self.scale_of_each().astype(np.float64) * self.tensor_scale)

    def values_float32(self) -> Floats:
        """Return the values as references compute them in fp32: both scales are multiplied first."""
        with np.errstate(over="ignore", under="ignore"):
            scales: Floats = (self.scale_of_each().astype(np.float64) * self.tensor_scale).astype(np.float32)
            return self.elements * scales

    def on_device(self) -> Quantised:
        """Return the matrix as a device holds it: inputs in the order of their groups, a host scale per output.

        Blocks of rows are copied to every output. Where one scale serves all inputs it is the host's.
        """
        order = np.argsort(self._columns(), kind="stable")
        elements = np.ascontiguousarray(self.elements[:, order])
        scales = self.scales[np.arange(len(elements)) // self.block[0]]
        host = np.full(len(elements), self.tensor_scale, dtype=np.float32)
        if self.block[1] >= elements.shape[1] and scales.shape[1] == 1 and self.tensor_scale == 1:
            return Quantised(elements, np.ones((len(elements), 0), dtype=np.float32), scales[:, 0])
        return Quantised(elements, scales, host)

    def _columns(self) -> NDArray[np.int64]:
        return self.columns if self.columns.size else np.arange(self.elements.shape[1]) // self.block[1]


def whole_block(shape: tuple[int, int], block: tuple[int, int]) -> tuple[int, int]:
    """Return a block with each side that is 0, or larger than the matrix, replaced by that of the matrix."""
    rows, columns = (min(side, size) if side else size for side, size in zip(block, shape, strict=True))
    return max(rows, 1), max(columns, 1)
