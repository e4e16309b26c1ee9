"""The applications of bench/applications: each module there measures itself and makes the tables of its page.

An application is a module with `measure(settings: Settings) -> Figures`, which builds, serves and asks a database at full
size (with settings.tiny, of a few hundred keys), and `tables(made: Comparison) -> list[Table]`, for the markers in
docs/applications."""

import sys
from typing import Callable

import machine
from comparison import Comparison, Table
from measurements import Figures, Settings

sys.path.append(str(machine.ROOT / "bench" / "applications"))
import compromised_credentials  # noqa: E402
import package_index  # noqa: E402
import safe_browsing  # noqa: E402

MODULES = (compromised_credentials, safe_browsing, package_index)

# What measures each.
BY_NAME: dict[str, Callable[[Settings], Figures]] = {
    "compromised-credentials": compromised_credentials.measure,
    compromised_credentials.TOGETHER_NAME: compromised_credentials.measure_together,
    "safe-browsing": safe_browsing.measure,
    "package-index": package_index.measure,
    package_index.TREE_NAME: package_index.measure_tree,
}


def tables(made: Comparison) -> list[Table]:
    return [table for module in MODULES for table in module.tables(made)]
