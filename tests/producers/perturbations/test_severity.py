import numpy as np
import pytest

from springback.producers.perturbations.severity import action_slip, checked_severity, moved_objects, wrong_grounding


def test_parameters_rise_with_severity() -> None:
    grid = np.linspace(0.0, 1.0, 11).tolist()
    for values in (
        [action_slip(severity).probability for severity in grid],
        [moved_objects(severity).rate for severity in grid],
        [moved_objects(severity).events for severity in grid],
        [wrong_grounding(severity).rate for severity in grid],
        [wrong_grounding(severity).steps for severity in grid],
    ):
        assert values == sorted(values)
        assert values[0] < values[-1]


@pytest.mark.parametrize("severity", [-0.1, 1.1, float("nan")])
def test_a_severity_outside_of_its_range_is_refused(severity: float) -> None:
    with pytest.raises(ValueError, match=r"a severity lies in \[0, 1\]"):
        checked_severity(severity)
