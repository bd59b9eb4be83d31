"""What is compared: the search, the search without each of its parts, and other samplers, all by name."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from autotune.baselines import GAUSSIAN_PROCESS, STRATEGIES, Strategy
from autotune.roofline import RooflineSettings
from autotune.screening import ScreeningSettings
from autotune.search_settings import DEFAULT_SEARCH, SearchSettings
from costmodel.model import ModelSettings

OURS, WARM = "ours", "warm start"


@dataclass(frozen=True, slots=True)
class Variant:
    """The search with other settings; `warm` starts from what the other problems' runs measured."""

    settings: SearchSettings = DEFAULT_SEARCH
    warm: bool = False


VARIANTS: Mapping[str, Variant] = MappingProxyType(
    {
        OURS: Variant(),
        WARM: Variant(warm=True),
        "no learned model": Variant(replace(DEFAULT_SEARCH, learned=False)),
        "no residual target": Variant(replace(DEFAULT_SEARCH, model=ModelSettings(residual=False))),
        "no roofline box": Variant(replace(DEFAULT_SEARCH, roofline_box=False)),
        "no stratified pool": Variant(
            replace(
                DEFAULT_SEARCH,
                roofline=RooflineSettings(stratified=False),
                screening=ScreeningSettings(stratified=False),
            )
        ),
        "no start at both ends": Variant(replace(DEFAULT_SEARCH, roofline=RooflineSettings(both_ends=False))),
        "batches of 5": Variant(replace(DEFAULT_SEARCH, batch=5, late_batch=5)),
        "batches of 40": Variant(replace(DEFAULT_SEARCH, batch=40, late_batch=40)),
    }
)
SAMPLERS: Mapping[str, Strategy] = MappingProxyType(dict(STRATEGIES) | {"gp": GAUSSIAN_PROCESS})
# All but the Gaussian process, which thinks for seconds per design.
DEFAULT = (*VARIANTS, *STRATEGIES)
EVERY = (*VARIANTS, *SAMPLERS)
