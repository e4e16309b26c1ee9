"""The kinds of measurements: each is a function from a task to its figures."""

from typing import Callable

import applications
import measure_several_keys
import measurements
from measurements import Figures, Settings


def measure_application(settings: Settings, name: str) -> Figures:
    """Measures bench/applications there."""
    return applications.BY_NAME[name](settings)


KINDS: dict[str, Callable[..., Figures]] = {
    "plan": measurements.measure_plan,
    "compared": measurements.measure_compared,
    "product": measurements.measure_product,
    "database": measurements.measure_database,
    "packed": measurements.measure_packed,
    "two-levels": measurements.measure_two_levels,
    "large": measurements.measure_large,
    "several-keys": measure_several_keys.measure_several_keys,
    "several-keys-plan": measure_several_keys.measure_several_keys_plan,
    "load": measurements.measure_load,
    "overview": measurements.measure_overview,
    "device": measurements.measure_device,
    "application": measure_application,
}
