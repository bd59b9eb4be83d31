"""Reading YAML safely and strictly: no objects, and no key twice, of which the last one would win silently."""

from typing import Any

import yaml


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses a key that a mapping has already."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for place, key in enumerate(keys):
            if key in keys[:place]:
                line = node.value[place][0].start_mark.line + 1
                raise yaml.YAMLError(f"key {key} a second time in line {line}")
        return super().construct_mapping(node, deep)


def load_yaml(text: str) -> Any:
    """Return the content of a YAML text; raises yaml.YAMLError for what is none, twice a key, or nested without end."""
    try:
        return yaml.load(text, Loader=_StrictLoader)  # noqa: S506 - a subclass of SafeLoader
    except RecursionError as error:
        raise yaml.YAMLError("more nested levels than any device has") from error
