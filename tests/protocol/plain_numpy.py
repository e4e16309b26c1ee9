"""Makes sure that there is numpy: runs the script again with Debian's Python, which python3-numpy is for, where this one
has none. Exits with 77, for "skipped", where that has none either (`make test` installs it)."""

import importlib.util
import os
import subprocess
import sys

DEBIAN_PYTHON = "/usr/bin/python3"

if importlib.util.find_spec("numpy") is None:
    try:
        subprocess.run([DEBIAN_PYTHON, "-c", "import numpy"], check=True, stderr=subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError):
        print(f"skipped: neither {sys.executable} nor {DEBIAN_PYTHON} has numpy")
        sys.exit(77)
    os.execv(DEBIAN_PYTHON, [DEBIAN_PYTHON, *sys.argv])
