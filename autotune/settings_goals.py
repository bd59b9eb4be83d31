"""The goals that the settings of a run name."""

from autotune.goals import Goals, goals_of
from autotune.problem import HARDWARE_GROUP, Knob
from autotune.run_settings import RunSettings
from configs.knobs import HARDWARE_KNOBS


def settings_goals(settings: RunSettings) -> Goals:
    """Return the goals of settings; raises UserError for an unknown objective, figure or knob."""
    knobs = [Knob(item.name, HARDWARE_GROUP, item.values, item.unit) for item in HARDWARE_KNOBS]
    return goals_of(settings.objectives, settings.requirements, knobs)
