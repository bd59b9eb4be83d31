"""One decode layer measured on a CUDA GPU: time, bytes per second and power, at several batches and contexts.

    python -m experiments.gpu_decode --model llama --json gpu_decode.json

The layer is real - norm, q/k/v product, rotary embedding, cache update, grouped-query attention over the whole cache,
output product, gated feed-forward - with random weights in bf16; q/k/v and gate/up are one matrix each, as fast
implementations have them. A CUDA graph of it is replayed, so that launches cost little. The layer's weights do not fit
a GPU's cache, so that each replay reads them from memory. Without a CUDA GPU it says so and exits with 1.
"""

import argparse
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import product
from math import sqrt
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING

from autotune.exit_codes import ANSWER_IS_NO, run_to_exit_code
from configs.errors import unwritable
from configs.model_config import ModelConfig, load_model_config

if TYPE_CHECKING:
    import torch
    from torch import Tensor

BATCHES = (1, 8)
CONTEXTS = (1024, 4096, 8192)
WARM_UPS = 20
SAMPLES = 30
REPLAYS = 20  # of one sample
POWER_SECONDS = 3.0
POWER_INTERVAL_MS = 100


@dataclass(frozen=True, slots=True)
class LayerWeights:
    """The parameters of one layer; matrices are [outputs, inputs], q/k/v and gate/up stacked in this order."""

    input_norm: "Tensor"
    qkv: "Tensor"
    output: "Tensor"
    feed_forward_norm: "Tensor"
    gate_up: "Tensor"
    down: "Tensor"

    @property
    def bytes(self) -> int:
        """Bytes of all parameters."""
        return sum(getattr(self, name).nbytes for name in self.__slots__)


@dataclass(frozen=True, slots=True)
class LayerState:
    """Caches [batch, kv_heads, context, head_dim], and the rotation [head_dim] of the newest token, the last one."""

    keys: "Tensor"
    values: "Tensor"
    cosine: "Tensor"
    sine: "Tensor"


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: median and 10th and 90th percentile of the time of a layer, and what it reads per second."""

    batch: int
    context: int
    layer_us: float
    layer_us_p10: float
    layer_us_p90: float
    weight_bytes: int
    cache_bytes: int
    gb_per_s: float
    power_w: float | None


def decode_layer(x: "Tensor", weights: LayerWeights, state: LayerState, config: ModelConfig) -> "Tensor":
    """Run one layer on x [batch, hidden]; the newest token's K and V go to the last place of the caches."""
    from torch.nn import functional

    from compiler.architectures import rotate

    width, batch = (config.hidden,), x.shape[0]
    heads, kv_heads, head_dim = config.heads, config.kv_heads, config.head_dim
    normalised = functional.rms_norm(x, width, weights.input_norm, config.norm_epsilon)
    qkv = functional.linear(normalised, weights.qkv).view(batch, heads + 2 * kv_heads, 1, head_dim)
    query, key, value = qkv[:, :heads], qkv[:, heads : heads + kv_heads], qkv[:, heads + kv_heads :]
    query, key = rotate(query, state.cosine, state.sine), rotate(key, state.cosine, state.sine)
    state.keys[:, :, -1:].copy_(key)
    state.values[:, :, -1:].copy_(value)
    # Query heads that share a KV head are rows of one product: all of them see the whole cache.
    grouped = query.reshape(batch, kv_heads, heads // kv_heads, head_dim)
    attended = functional.scaled_dot_product_attention(grouped, state.keys, state.values)
    x = x + functional.linear(attended.reshape(batch, heads * head_dim), weights.output)
    normalised = functional.rms_norm(x, width, weights.feed_forward_norm, config.norm_epsilon)
    gate, up = functional.linear(normalised, weights.gate_up).chunk(2, dim=-1)
    return x + functional.linear(functional.silu(gate) * up, weights.down)


def random_layer(config: ModelConfig, generator: "torch.Generator", dtype: "torch.dtype") -> LayerWeights:
    """Return random weights on the generator's device, scaled so that values stay finite through a layer."""
    import torch

    def matrix(outputs: int, inputs: int) -> torch.Tensor:
        drawn = torch.randn(outputs, inputs, generator=generator, device=generator.device, dtype=dtype)
        return drawn / sqrt(inputs)

    def norm() -> torch.Tensor:
        return 1 + 0.1 * torch.randn(config.hidden, generator=generator, device=generator.device, dtype=dtype)

    query = config.heads * config.head_dim
    return LayerWeights(
        input_norm=norm(),
        qkv=matrix(query + 2 * config.kv_heads * config.head_dim, config.hidden),
        output=matrix(config.hidden, query),
        feed_forward_norm=norm(),
        gate_up=matrix(2 * config.intermediate, config.hidden),
        down=matrix(config.hidden, config.intermediate),
    )


def random_state(
    config: ModelConfig, batch: int, context: int, generator: "torch.Generator", dtype: "torch.dtype"
) -> LayerState:
    """Return caches of a context filled with random values, and the rotation of its last token."""
    import torch

    from compiler.architectures import inverse_frequencies

    device, shape = generator.device, (batch, config.kv_heads, context, config.head_dim)
    keys = torch.randn(shape, generator=generator, device=device, dtype=dtype)
    values = torch.randn(shape, generator=generator, device=device, dtype=dtype)
    # Angles reach thousands of radians, which 16-bit formats cannot hold.
    precision = torch.float64 if dtype == torch.float64 else torch.float32
    angles = (context - 1) * inverse_frequencies(config, device, precision)
    angles = torch.cat((angles, angles), dim=-1)
    return LayerState(keys, values, angles.cos().to(dtype), angles.sin().to(dtype))


def captured(step: Callable[[], object]) -> "torch.cuda.CUDAGraph":
    """Return a CUDA graph of a step that has run a few times before."""
    import torch

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph


def replay_times_us(graph: "torch.cuda.CUDAGraph") -> list[float]:
    """Return the time of one replay in each of several samples."""
    import torch

    for _ in range(WARM_UPS):
        graph.replay()
    times = []
    for _ in range(SAMPLES):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        for _ in range(REPLAYS):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / REPLAYS)
    return times


def power_w(graph: "torch.cuda.CUDAGraph", replay_us: float) -> float | None:
    """Return the median board power while a graph is replayed for some seconds; None without nvidia-smi's reading."""
    import torch

    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    identifier = getattr(torch.cuda.get_device_properties(0), "uuid", None)
    chosen = ["-i", f"GPU-{identifier}"] if identifier is not None else []
    query = ["--query-gpu=power.draw", "--format=csv,noheader,nounits", "-lms", str(POWER_INTERVAL_MS)]
    with subprocess.Popen([program, *chosen, *query], stdout=subprocess.PIPE, text=True) as sampler:
        for _ in range(int(POWER_SECONDS * 1e6 / replay_us)):
            graph.replay()
        torch.cuda.synchronize()
        sampler.terminate()
        printed, _ = sampler.communicate()
    readings = power_readings(printed)
    # The reading is an average over some time: the first half still holds what was before.
    settled = readings[len(readings) // 2 :]
    return median(settled) if settled else None


def power_readings(printed: str) -> list[float]:
    """Return the numbers among the lines that nvidia-smi printed; what a GPU does not report is left out."""
    numbers = []
    for line in printed.splitlines():
        try:
            numbers.append(float(line))
        except ValueError:
            continue
    return numbers


def measure(config: ModelConfig, batch: int, context: int) -> Measured:
    """Measure one case on the current CUDA GPU."""
    import torch

    generator = torch.Generator("cuda").manual_seed(0)
    weights = random_layer(config, generator, torch.bfloat16)
    state = random_state(config, batch, context, generator, torch.bfloat16)
    x = torch.randn(batch, config.hidden, generator=generator, device="cuda", dtype=torch.bfloat16)
    with torch.inference_mode():
        graph = captured(lambda: decode_layer(x, weights, state, config))
        times = replay_times_us(graph)
        middle = median(times)
        watt = power_w(graph, middle)
    deciles = quantiles(times, n=10)
    cache_bytes = state.keys.nbytes + state.values.nbytes
    return Measured(
        batch=batch,
        context=context,
        layer_us=middle,
        layer_us_p10=deciles[0],
        layer_us_p90=deciles[-1],
        weight_bytes=weights.bytes,
        cache_bytes=cache_bytes,
        gb_per_s=(weights.bytes + cache_bytes) / middle * 1e-3,
        power_w=watt,
    )


def main() -> None:
    """Measure every case, print the table and write it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="llama")
    parser.add_argument("--json", type=Path, default=Path("gpu_decode.json"), help="write the table to this file")
    choice = parser.parse_args()
    config = load_model_config(choice.model)
    import torch

    if not torch.cuda.is_available():
        print("no CUDA GPU here: nothing was measured", file=sys.stderr)
        sys.exit(ANSWER_IS_NO)
    rows = []
    print(f"{'batch':>5s}{'context':>9s}{'us':>9s}{'p10':>9s}{'p90':>9s}{'GB/s':>8s}{'W':>7s}")
    for batch, context in product(BATCHES, CONTEXTS):
        row = measure(config, batch, context)
        rows.append(row)
        watt = "-" if row.power_w is None else f"{row.power_w:.0f}"
        print(
            f"{batch:5d}{context:9d}{row.layer_us:9.1f}{row.layer_us_p10:9.1f}{row.layer_us_p90:9.1f}"
            f"{row.gb_per_s:8.0f}{watt:>7s}"
        )
    found = {
        "gpu": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "model": config.name,
        "layers": config.layers,
        "layer": [asdict(row) for row in rows],
    }
    try:
        choice.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise unwritable(str(choice.json), error) from error


if __name__ == "__main__":
    run_to_exit_code(main)
