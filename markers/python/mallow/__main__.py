"""`python -m mallow`: the command `mallow`, as `pip install mallow-profiler` installs it beside this interpreter."""

import os
import shutil
import sys
import sysconfig


def _command():
    """The command of this interpreter's environment; of its user's; of PATH. None where there is none."""
    user = sysconfig.get_path("scripts", os.name + "_user")
    beside = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "bin")
    places = [sysconfig.get_path("scripts"), user, beside]
    paths = [os.path.join(place, "mallow") for place in places] + [shutil.which("mallow")]
    return next((path for path in paths if path and os.access(path, os.X_OK)), None)


command = _command()
if command is None:
    sys.exit("mallow: the command is not installed; `pip install mallow-profiler` installs it.")
os.execv(command, ["mallow"] + sys.argv[1:])
