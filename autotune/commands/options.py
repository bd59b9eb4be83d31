"""Options that several commands share: the scenario, and values that have to be among known ones."""

from typing import Annotated

import typer

Context = Annotated[int, typer.Option("--context", help="tokens in the KV cache, the newest included", min=1)]
Batch = Annotated[int, typer.Option(help="sequences that decode together", min=1)]
Weights = Annotated[str, typer.Option(help="number format of the layers' weights, such as int8 or mxfp4")]
Kv = Annotated[str, typer.Option(help="number format of the KV cache: bf16, fp16, int8, fp8 or int4")]
Speculative = Annotated[int, typer.Option(help="tokens of each sequence that are verified together", min=1, max=64)]
Devices = Annotated[str, typer.Option(help="devices behind the host: a number, or auto for as many as needed")]


def require_among(value: str, allowed: tuple[str, ...], option: str) -> str:
    """Return the value; raises UserError, with what is known, for one that is not."""
    from configs.errors import UserError

    if value not in allowed:
        raise UserError(
            where=option, expected=f"one of {', '.join(allowed)}", found=repr(value), way_out="give one of these"
        )
    return value
