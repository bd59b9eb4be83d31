"""One row of a device's timing table."""

from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from configs.record import Record

MOST_EXPRESSION = 200  # characters
LevelName = Literal["channel", "pseudochannel", "rank", "bankgroup", "bank"]
SIBLING = "sibling"


class Constraint(Record):
    """`following` may issue no earlier than `cycles` after the `window`-th last `preceding`, at the given level.

    With `sibling` the preceding command is one on another instance of the level under the same parent, such as another
    rank of the channel.
    """

    level: LevelName
    preceding: Annotated[tuple[str, ...], Field(min_length=1)]
    following: Annotated[tuple[str, ...], Field(min_length=1)]
    cycles: Annotated[str, Field(max_length=MOST_EXPRESSION)]
    window: Annotated[int, Field(gt=0, le=64)] = 1
    sibling: bool = False

    @model_validator(mode="before")
    @classmethod
    def _from_row(cls, row: Any) -> Any:
        """Accept the table's compact form: [level, preceding, following, cycles, window or "sibling"?]."""
        if not isinstance(row, list):
            return row
        if len(row) not in (4, 5):
            raise ValueError(f"a constraint row has 4 or 5 cells, this one {len(row)}: {row}")
        cells = {
            "level": row[0],
            "preceding": str(row[1]).split(),
            "following": str(row[2]).split(),
            "cycles": str(row[3]),
        }
        if len(row) == 4:
            return cells
        return cells | ({"sibling": True} if row[4] == SIBLING else {"window": row[4]})

    @model_validator(mode="after")
    def _is_windowed_or_sibling(self) -> "Constraint":
        if self.sibling and (self.window != 1 or self.level == "channel"):
            raise ValueError("a sibling row has no window and a level below the channel")
        return self

    def row(self) -> list[str | int]:
        """Return the compact form that `Constraint` reads back."""
        cells: list[str | int] = [self.level, " ".join(self.preceding), " ".join(self.following), self.cycles]
        if self.sibling:
            return [*cells, SIBLING]
        return cells if self.window == 1 else [*cells, self.window]
