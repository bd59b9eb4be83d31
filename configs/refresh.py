"""How a device's cells are kept charged."""

from enum import StrEnum
from typing import Annotated, Any

from pydantic import Field, model_validator

from configs.record import Record


class RefreshPolicy(StrEnum):
    """How the controller keeps the cells charged."""

    NONE = "none"
    ALL_BANK = "all-bank"  # REFab every nREFI
    PER_BANK = "per-bank"  # REFpb every nREFI / banks, bank after bank


# Above this temperature cells leak twice as fast and every refresh interval halves (JEDEC: tREFI above 85 degrees).
HOT_C = 85


class Refresh(Record):
    """When refreshes fall due; `postponed` of them may be saved up and are then made up together with the next one."""

    policy: RefreshPolicy = RefreshPolicy.ALL_BANK
    postponed: Annotated[int, Field(ge=0, le=8)] = 0
    temperature_c: Annotated[float, Field(ge=-40, le=125)] = HOT_C

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, value: Any) -> Any:
        """Accept the bare name of a policy."""
        return {"policy": value} if isinstance(value, str) else value

    @model_validator(mode="after")
    def _postpones_all_banks_only(self) -> "Refresh":
        if self.postponed and self.policy is not RefreshPolicy.ALL_BANK:
            raise ValueError("only all-bank refreshes can be postponed")
        return self

    def __bool__(self) -> bool:
        """Return whether there is any refresh."""
        return self.policy is not RefreshPolicy.NONE

    @property
    def hot(self) -> bool:
        """Whether the interval is halved."""
        return self.temperature_c > HOT_C
