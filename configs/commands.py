"""The names of the commands that a device file may speak of; `simulator.isa.Kind` says what each of them is."""

COMMAND_NAMES = (
    *("ACT", "ACT1", "ACT2", "ACT4", "ACT16", "PRE", "PRE4", "PREA"),
    *("CAS_RD", "CAS_WR", "RD", "WR", "RDA", "WRA", "WRA16"),
    *("LATCH16", "MAC", "MAC16", "MACL16", "SCALE16"),
    *("AF16", "EWMUL16", "RDCP", "WRCP", "WRGB", "WRMAC16", "RDMAC16", "RDAF16", "TMOD"),
    *("REFab", "REFpb", "RFMab", "RFMpb"),
    *("ACT8", "PRE8", "RD8", "WR8", "ST8"),
)
