inside python3 -m venv /venv
inside /venv/bin/pip install --quiet --no-index --find-links /packages "mallow-profiler==$VERSION"
PLACE=/venv/bin
records 'opendir\|setlocale' ls /
[ "$(inside /venv/bin/python -m mallow --version)" = "$(inside mallow --version)" ] || fail "\`python -m mallow\` is another program."
# The package that programs import is beside it, and has the program's own lines.
records 'Plain' /venv/bin/python -c 'import mallow
def Plain():
    return [bytes(1000) for _ in range(100)]
mallow.measure("r", Plain)'
inside /venv/bin/pip uninstall --quiet --yes mallow-profiler mallow-markers
is_gone
