"""Do the full-size configurations build the models that their authors published?"""

import pytest

pytest.importorskip("transformers")

from tests.compiler.huggingface.published import FOLDER, MODELS, Published, parameter_count


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_the_parameters_are_as_many_as_published(model: Published) -> None:
    counted = parameter_count(model.name) + model.elsewhere.parameters
    assert abs(counted - model.parameters) <= model.last_digit


def test_every_configuration_has_a_published_count() -> None:
    assert {path.stem for path in FOLDER.glob("*.json")} == {model.name for model in MODELS}


def test_what_is_counted_elsewhere_has_a_reason() -> None:
    assert all(bool(model.elsewhere.parameters) == bool(model.elsewhere.reason) for model in MODELS)
