"""What every section of a device file is: a frozen record that refuses keys it does not know."""

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

PositiveInt = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


class Record(BaseModel):
    """A frozen section of the file; a key it does not know is an error."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False, populate_by_name=True, serialize_by_alias=True)
