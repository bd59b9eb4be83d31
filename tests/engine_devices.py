"""Devices for the tests of the timing engines: the built-in ones and variants that meet other corners."""

from typing import Any

from configs.constraint import Constraint
from configs.device import Device, load_device
from configs.refresh import Refresh, RefreshPolicy


def changed(device: Device, timing: dict[str, int], organisation: dict[str, int], **fields: Any) -> Device:
    """Return the device with other timing values, another organisation and perhaps other sections, checked anew."""
    content = device.model_dump() | fields
    content["timing"] |= timing
    content["organisation"] |= organisation
    return Device.model_validate(content)


AIM = load_device("gddr6-aim")
COMPAT = load_device("gddr6-aim-compat")
FREQUENT_REFRESH = changed(AIM, {"nREFI": 1100}, {})
FEW_BANKS = changed(AIM, {"nREFI": 900, "nCCDMAC": 5}, {"bank_groups": 2, "banks_per_group": 2, "rows": 64})
ONE_BANK = changed(AIM, {"nRFC": 100, "nREFI": 700}, {"bank_groups": 1, "banks_per_group": 1, "rows": 8})
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
HOT = AIM.model_copy(update={"refresh": Refresh(temperature_c=95)})
POSTPONED = AIM.model_copy(update={"refresh": Refresh(postponed=3)})
# Opening a refreshed bank again takes AF16 longer than the time between refreshes of the base device.
PER_BANK = changed(AIM, {"nREFI": 9600}, {}, refresh=Refresh(policy=RefreshPolicy.PER_BANK))
LATCHED = changed(AIM, {}, {"row_buffers": 2})
LATCHED_PER_BANK = changed(PER_BANK, {}, {"row_buffers": 2})
LATCHED_FREQUENT = changed(FREQUENT_REFRESH, {"nLTMAC": 20}, {"row_buffers": 2, "bank_groups": 2, "rows": 64})
HBM2, HBM3 = load_device("hbm2"), load_device("hbm3")
GDDR6, LPDDR5, DDR5 = load_device("gddr6"), load_device("lpddr5"), load_device("ddr5")
PLAIN = (HBM2, HBM3, GDDR6, LPDDR5, DDR5)
HBM3_PER_BANK = HBM3.model_copy(update={"refresh": Refresh(policy=RefreshPolicy.PER_BANK)})
# Twice the banks, so that they are refreshed half as often, as two ranks would be by one controller.
LPDDR5_RANKS = changed(LPDDR5, {"nREFI": 6250}, {"ranks": 2}, refresh=Refresh(policy=RefreshPolicy.PER_BANK))
DDR5_RANKS = changed(DDR5, {}, {"ranks": 2}, refresh=Refresh(postponed=2, temperature_c=95))
HBM_PIM, HBM_PIM_COMPAT = load_device("hbm-pim"), load_device("hbm-pim-compat")
DEVICES = (
    *(AIM, COMPAT, FREQUENT_REFRESH, FEW_BANKS, ONE_BANK, COLUMN_WINDOWS, HOT, POSTPONED, PER_BANK),
    *(*PLAIN, HBM3_PER_BANK, LPDDR5_RANKS, DDR5_RANKS),
    *(LATCHED, LATCHED_PER_BANK, LATCHED_FREQUENT),
    *(HBM_PIM, HBM_PIM_COMPAT),
)
