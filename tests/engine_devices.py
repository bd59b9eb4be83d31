"""Devices for the tests of the timing engines: the built-in ones and variants that meet other corners."""

from configs.device import Constraint, Device, load_device


def _changed(device: Device, timing: dict[str, int], organisation: dict[str, int]) -> Device:
    fields = device.model_dump()
    fields["timing"] |= timing
    fields["organisation"] |= organisation
    return Device.model_validate(fields)


AIM = load_device("gddr6-aim")
COMPAT = load_device("gddr6-aim-compat")
FREQUENT_REFRESH = _changed(AIM, {"nREFI": 1100}, {})
FEW_BANKS = _changed(AIM, {"nREFI": 900, "nCCDMAC": 5}, {"bank_groups": 2, "banks_per_group": 2, "rows": 64})
ONE_BANK = _changed(AIM, {"nRFC": 100, "nREFI": 700}, {"bank_groups": 1, "banks_per_group": 1, "rows": 8})
COLUMN_WINDOWS = AIM.model_copy(
    update={
        "constraints": (
            *AIM.constraints,
            Constraint(level="channel", preceding=("MAC16",), following=("MAC16", "PREA"), cycles="40", window=6),
            Constraint(level="bankgroup", preceding=("RD", "MAC"), following=("MAC",), cycles="30", window=3),
            Constraint(level="bank", preceding=("WR",), following=("WR", "PRE"), cycles="90", window=2),
        )
    }
)
DEVICES = (AIM, COMPAT, FREQUENT_REFRESH, FEW_BANKS, ONE_BANK, COLUMN_WINDOWS)
