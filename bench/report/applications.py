"""The applications of bench/applications: each module there measures itself and makes the tables of its page.

An application is a module with `measure(settings: Settings) -> Figures`, which builds, serves and asks a database at full
size (with settings.tiny, of a few hundred keys), and `tables(made: Comparison) -> list[Table]`, for the markers in
docs/applications."""

import sys

import machine
from comparison import Comparison, Table

sys.path.append(str(machine.ROOT / "bench" / "applications"))
import compromised_credentials  # noqa: E402
import package_index  # noqa: E402
import safe_browsing  # noqa: E402

BY_NAME = {
    "compromised-credentials": compromised_credentials,
    "safe-browsing": safe_browsing,
    "package-index": package_index,
}


def tables(made: Comparison) -> list[Table]:
    return [table for module in BY_NAME.values() for table in module.tables(made)]
