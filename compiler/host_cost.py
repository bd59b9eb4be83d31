"""What the host processor takes for the work it gets: memory-bound or compute-bound, whichever is slower."""

from typing import Any

import numpy as np

from configs.device import Host


def host_work_ns(host: Host, moved_bytes: Any, operations: Any, *, matrix: bool = False) -> Any:
    """Return ns to move `moved_bytes` through host memory and do `operations` floating-point operations."""
    peak = host.matrix_gflops if matrix else host.vector_gflops
    return np.maximum(moved_bytes / host.memory_bandwidth_gb_per_s, operations / peak)


def mixed_work_ns(host: Host, moved_bytes: Any, operations: Any, matrix_operations: Any) -> Any:
    """Return ns of work that has element-wise operations and matrix products, one after the other."""
    compute_ns = operations / host.vector_gflops + matrix_operations / host.matrix_gflops
    return np.maximum(moved_bytes / host.memory_bandwidth_gb_per_s, compute_ns)
