"""What a body is for, told by the calls in it: a word for readers and for tables, never for what is computed."""

from collections.abc import Callable

from compiler.bodies import Body

Targets = frozenset[str]
ACTIVATIONS = frozenset(
    ("silu", "gelu", "relu", "sigmoid", "tanh", "softplus", "hardtanh", "relu6", "leaky_relu", "elu", "mish")
)
VIEWS = frozenset(
    ("view", "reshape", "transpose", "permute", "unsqueeze", "squeeze", "expand", "slice", "select", "split",
     "split_with_sizes", "chunk", "clone", "_to_copy", "cat", "t", "flatten", "_unsafe_view", "unbind")
)  # fmt: skip
OTHER, HISTORY = "other", "history"

COMPUTATIONS: tuple[tuple[str, Callable[[Targets], bool]], ...] = (
    ("route", lambda found: bool(found & {"topk", "sort"})),
    ("rotary_tables", lambda found: {"cos", "sin"} <= found),
    ("norm", lambda found: bool(found & {"rsqrt", "native_layer_norm", "layer_norm", "rms_norm", "linalg_vector_norm",
                                         "group_norm", "native_group_norm"})),
    ("rotary", lambda found: {"neg", "cat"} <= found or "view_as_complex" in found),
    ("softmax", lambda found: bool(found & {"softmax", "_softmax", "_safe_softmax"})),
    ("activation", lambda found: bool(found & ACTIVATIONS)),
    ("rotary", lambda found: {"mul", "sub", "stack"} <= found or {"mul", "sub", "cat"} <= found),
    ("mask", lambda found: bool(found & {"le", "gt", "lt", "ge", "logical_and", "bitwise_and"})),
    ("view", lambda found: found <= VIEWS),
    ("add", lambda found: found - VIEWS == {"add"}),
    ("scale", lambda found: found - VIEWS <= {"mul", "div"}),
)  # fmt: skip
RECURRENCES: tuple[tuple[str, Callable[[Targets], bool]], ...] = (
    ("convolution", lambda found: bool(found & {"conv1d", "convolution"})),
    ("state_space", lambda found: {"exp", "mul", "add"} <= found),
    ("gated_delta", lambda found: {"mul", "sum", "sub", "add"} <= found),
    ("linear_attention", lambda found: {"mul", "add"} <= found and bool(found & {"matmul", "bmm", "sum"})),
    ("state_space", lambda found: {"mul", "add"} <= found),
    (HISTORY, lambda found: found <= VIEWS | {"mul", "sum", "roll", "copy"}),
)


def role_of(body: Body, *, recurrence: bool) -> str:
    """Return the role of a body, `other` where none fits."""
    found = frozenset(body.targets)
    return next((role for role, fits in (RECURRENCES if recurrence else COMPUTATIONS) if fits(found)), OTHER)
