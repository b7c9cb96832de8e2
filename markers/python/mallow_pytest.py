"""Limits on what a single test of pytest allocates and leaks: the plugin that comes with mallow's markers.

    @pytest.mark.limit_allocations(1000)
    def test_parse(): ...

    @pytest.mark.limit_leaks("64KiB")
    def test_cache(): ...

`pytest --mallow` runs the tests with such a mark once more than usual: not here, but all together in a pytest of their own
under `mallow check`, each as a region (`_Child`). Their counts, the sites and the outcome come back in two files, and each
test passes or fails here by them (`_Parent`). Without `--mallow` a test with a mark is skipped and says why. What was not
counted never passes.
"""

import functools
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import pytest

import mallow

# The grammar of sizes of all of mallow: K, M, G and T are binary.
_UNITS = {"": 1, "B": 1, "k": 1 << 10, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UNITS.update({"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40})
_UNITS.update({"kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12})
_SIZE = re.compile(r"\s*([0-9]+\.?[0-9]*|\.[0-9]+)\s*([A-Za-z]*)\s*", re.ASCII)
_BYTES_MAX = 1.8e19
_COUNT = re.compile(r"\s*[0-9][0-9_]{0,25}\s*", re.ASCII)
# Names the file with the plan; set for the pytest that mallow runs, and for no other.
_PLAN = "MALLOW_PYTEST_PLAN"
_STACKS_MAX = 10


def pytest_addoption(parser):
    group = parser.getgroup("mallow", "limits on allocations and leaks, counted by mallow")
    group.addoption("--mallow", action="store_true", help="count what tests with a limit allocate, and hold them to it")
    group.addoption("--mallow-bin", metavar="FILE", help="the mallow that counts, instead of the installed one")
    group.addoption("--mallow-runs", type=int, default=1, metavar="N", help="call each test N times; the cheapest call counts (1)")
    group.addoption("--mallow-warmup", type=int, default=0, metavar="N", help="calls before them that do not count (0)")


def pytest_configure(config):
    config.addinivalue_line("markers", "limit_allocations(most): the test makes at most so many allocations")
    config.addinivalue_line("markers", 'limit_leaks(most): it leaves at most so many bytes behind: 4096, "64KiB"')
    if _PLAN in os.environ:
        config.pluginmanager.register(_Child(os.environ[_PLAN]), "mallow-child")
    else:
        config.pluginmanager.register(_Parent(config), "mallow-parent")


def _size(text):
    """Bytes of "64KiB", "1.5 MB", "512K" or "7"; None for what is no size."""
    match = _SIZE.fullmatch(text)
    if match is None or match[2] not in _UNITS:
        return None
    size = float(match[1]) * _UNITS[match[2]]
    return int(size) if size < _BYTES_MAX else None


def _count(text):
    """A number as Python writes it: "1_000"; None for what is no number."""
    return int(text.replace("_", "")) if _COUNT.fullmatch(text) else None


def _limit(value, in_text, kind):
    """What a mark says: a number, or a text with one."""
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    number = in_text(value) if isinstance(value, str) else None
    if number is None:
        raise pytest.UsageError(f"{value!r} is no limit; it is {kind}.")
    return number


# How each mark's limit is read, and what it is.
_MARKS = {
    "limit_allocations": (_count, "a number of allocations"),
    "limit_leaks": (_size, 'a size such as 4096 or "64KiB", in ' + ", ".join(filter(None, _UNITS))),
}


def _limits(item):
    """The limits of a test's nearest marks, by mark."""
    limits = {}
    for name, (in_text, kind) in _MARKS.items():
        mark = item.get_closest_marker(name)
        if mark is None:
            continue
        if len(mark.args) != 1 or mark.kwargs:
            raise pytest.UsageError(f"{item.nodeid}: {name} has one argument, the limit.")
        limits[name] = _limit(mark.args[0], in_text, kind)
    return limits


class _Child:
    """In the pytest that mallow runs: each test of the plan is a region, and nothing else runs."""

    def __init__(self, path):
        with open(path, encoding="utf-8") as file:
            self.plan = json.load(file)
        self.outcomes = {}

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config, items):
        wanted = [item for item in items if item.nodeid in self.plan["regions"]]
        config.hook.pytest_deselected(items=[item for item in items if item not in wanted])
        items[:] = wanted

    @pytest.hookimpl(hookwrapper=True, trylast=True)
    def pytest_pyfunc_call(self, pyfuncitem):
        function = pyfuncitem.obj
        region = self.plan["regions"][pyfuncitem.nodeid]

        def counted(**arguments):
            if inspect.iscoroutinefunction(function):
                pytest.fail("a coroutine cannot be counted: other code runs between its steps.", pytrace=False)
            # No call stands between the region and a test without fixtures.
            mallow.measure(region, functools.partial(function, **arguments) if arguments else function)

        pyfuncitem.obj = counted
        try:
            yield
        finally:
            pyfuncitem.obj = function

    def pytest_runtest_logreport(self, report):
        outcome = self.outcomes.setdefault(report.nodeid, {"outcome": "passed", "text": ""})
        if report.outcome != "passed" and outcome["outcome"] == "passed":
            is_skipped = isinstance(report.longrepr, tuple)
            text = re.sub("^Skipped: ", "", report.longrepr[2]) if is_skipped else report.longreprtext
            outcome.update(outcome=report.outcome, text=text)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session):
        with open(self.plan["outcomes"], "w", encoding="utf-8") as file:
            json.dump({"tests": self.outcomes, "counted": mallow.is_watching()}, file)
        # A test that fails is an answer; mallow would take another status for a program that broke.
        session.exitstatus = 0


class _Parent:
    """In the pytest that was called: runs the child once, and holds each test to its limits."""

    def __init__(self, config):
        self.config = config
        self.limits = {}
        self.results = None

    def pytest_collection_finish(self, session):
        limits = {item.nodeid: _limits(item) for item in session.items}
        self.limits = {nodeid: its for nodeid, its in limits.items() if its}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item, nextitem):
        """Neither fixtures nor the test itself run here: it would run twice."""
        if item.nodeid not in self.limits:
            return None
        hook = item.ihook
        hook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
        call = pytest.CallInfo.from_call(lambda: self._judge(item), when="call")
        hook.pytest_runtest_logreport(report=hook.pytest_runtest_makereport(item=item, call=call))
        hook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
        # What a test before it has set up for its module or session is no longer needed after it.
        item.session._setupstate.teardown_exact(nextitem)
        return True

    def _judge(self, item):
        if not self.config.getoption("mallow"):
            pytest.skip("its allocations are not counted without --mallow")
        if any(item.iter_markers("skip")):
            pytest.skip("it has the mark skip")
        if self.results is None:
            self.results = _run(self.config, self.limits)
        said = self.results.outcomes.get(item.nodeid)
        if said is not None and said["outcome"] == "skipped":
            pytest.skip(said["text"])
        if said is not None and said["outcome"] == "failed":
            pytest.fail(said["text"], pytrace=False)
        problem = self.results.problem(item.nodeid)
        if problem or said is None:
            pytest.fail(f"its allocations were not counted: {problem or 'it did not run under mallow.'}", pytrace=False)
        text = self.results.verdict(item.nodeid, self.limits[item.nodeid])
        if text:
            pytest.fail(text, pytrace=False)


def _command(config):
    """The path of mallow: what was named, what is installed beside this interpreter, what is on PATH."""
    named = config.getoption("mallow_bin")
    beside = os.path.join(os.path.dirname(sys.executable), "mallow")
    return named or (beside if os.access(beside, os.X_OK) else shutil.which("mallow"))


def _run(config, limits):
    """Runs the tests with limits under mallow."""
    command = _command(config)
    if command is None:
        return _Results(problem="mallow is not installed; `pip install mallow-profiler` installs it, and --mallow-bin names it.")
    regions = {nodeid: f"t{at}" for at, nodeid in enumerate(sorted(limits))}
    with tempfile.TemporaryDirectory(prefix="mallow-pytest-") as folder:
        plan, outcomes, report = (os.path.join(folder, name) for name in ("plan.json", "outcomes.json", "report.json"))
        with open(plan, "w", encoding="utf-8") as file:
            json.dump({"regions": regions, "outcomes": outcomes}, file)
        words = [sys.executable, "-m", "pytest", "-p", "mallow_pytest", *_arguments(config)]
        # JSON's texts are TOML's as well.
        suite = {
            "name": "pytest",
            "cmd": words,
            "cwd": str(config.invocation_params.dir),
            "timeout": "3600s",
            "runs": max(config.getoption("mallow_runs"), 1),
            "warmup": max(config.getoption("mallow_warmup"), 0),
        }
        with open(os.path.join(folder, "mallow.toml"), "w", encoding="utf-8") as file:
            file.write("[[test]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in suite.items()))
            file.write(f"env = {{ {_PLAN} = {json.dumps(plan)} }}\n")
        # This check has no verdicts of its own to show to GitHub.
        hidden = ("GITHUB_ACTIONS", "GITHUB_STEP_SUMMARY")
        variables = {key: value for key, value in os.environ.items() if key not in hidden}
        check = [command, "check", folder, "--json", "-o", report]
        try:
            ended = subprocess.run(check, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=variables, check=False)
        except OSError as error:
            return _Results(problem=f"{command} cannot be started: {error}.")
        said = ended.stdout.decode(errors="replace").strip()
        if not os.path.exists(report):
            return _Results(problem=f"{command} check ended with {ended.returncode}: {said}")
        with open(report, encoding="utf-8") as file:
            check = json.load(file)
        told = {}
        if os.path.exists(outcomes):
            with open(outcomes, encoding="utf-8") as file:
                told = json.load(file)
        return _Results(check, told, regions)


def _arguments(config):
    """What pytest was called with, for the pytest that mallow runs: no other process, no other tracer, nothing cached."""
    own = re.compile(r"--mallow(-bin|-runs|-warmup)?(=.*)?")
    words, skips = [], False
    for word in map(str, config.invocation_params.args):
        match = own.fullmatch(word)
        if not match and not skips:
            words.append(word)
        skips = bool(match and match[1] and not match[2])
    have = config.pluginmanager.hasplugin
    words += ["-n0"] if have("xdist") else []
    words += ["--no-cov"] if have("_cov") or have("pytest_cov") else []
    # Without it pytest may take the folder of an option's value for its root, and its names of tests begin there.
    words += ["--rootdir", str(config.rootpath)] + (["-c", str(config.inipath)] if config.inipath else [])
    return words + ["--maxfail=0"]


class _Results:
    """What came back."""

    def __init__(self, check=None, told=None, regions=None, problem=None):
        self.check = check or {"tests": [], "frames": [], "sentences": []}
        self.outcomes = (told or {}).get("tests", {})
        self.regions = regions or {}
        self.said = problem

    def _test(self, nodeid):
        region = self.regions.get(nodeid)
        for test in self.check["tests"]:
            measurement = test["measurement"]
            if measurement is not None and measurement.get("region") == region:
                return test
        return None

    def problem(self, nodeid):
        """Why nothing is known of a test; None if its counts are right."""
        if self.said:
            # No test ran at all.
            self.outcomes.setdefault(nodeid, {"outcome": "passed", "text": ""})
            return self.said
        test = self._test(nodeid)
        broken = [it for it in self.check["tests"] if it["outcome"].lower() in ("error", "blind")]
        if test is None or test in broken:
            sentences = [sentence for it in broken for sentence in it["sentences"]]
            return " ".join(sentences + self.check["sentences"]) or "pytest did not call it as a function, as it does not call those of unittest."
        return None

    def verdict(self, nodeid, limits):
        """What is wrong with a test, with its figures and its lines; None if it is within its limits."""
        test = self._test(nodeid)
        measurement = test["measurement"]
        figures = measurement["runs"][measurement["judged"]]["figures"]
        left = min(run["figures"]["remaining_bytes"] for run in measurement["runs"])
        lines = []
        most = limits.get("limit_allocations")
        if most is not None and figures["allocations"] > most:
            lines.append(f"{figures['allocations']:,} allocations; the limit is {most:,}.")
            lines += self._sites(measurement["sites"], nodeid, "allocations", "allocations")
        most = limits.get("limit_leaks")
        if most is not None and left > most:
            lines.append(f"{left:,} bytes are left behind; the limit is {most:,}.")
            lines += self._sites(test["left"], nodeid, "remaining_bytes", "bytes")
        if not lines:
            return None
        figures = ", ".join(f"{key.replace('_', ' ')} {value:,}" for key, value in figures.items())
        return "\n".join(lines + [f"all its figures: {figures}"])

    def _sites(self, sites, nodeid, key, unit):
        """Each line of Python that allocates, with its callers up to the test; the largest first."""
        sums = {}
        for site in sites:
            chain = self._chain(site["stack"], nodeid)
            sums[chain] = sums.get(chain, 0) + site["figures"][key]
        rows = sorted(((count, chain) for chain, count in sums.items() if count), key=lambda row: (-row[0], row[1]))
        lines = [f"  {count:>9,} {unit}  {chain}" for count, chain in rows[:_STACKS_MAX]]
        rest = sum(count for count, _ in rows[_STACKS_MAX:])
        return lines + ([f"  {rest:>9,} {unit}  in {len(rows) - _STACKS_MAX} more lines"] if rest else [])

    def _chain(self, stack, nodeid):
        frames = [self.check["frames"][at] for at in stack]
        ours = [frame for frame in frames if frame.get("language") == "python"] or frames
        shown = []
        test = nodeid.split("::")[-1].split("[")[0]
        for frame in ours:
            where = frame.get("file") and f" ({os.path.relpath(frame['file'])}:{frame.get('line') or 0})"
            shown.append(frame["function"] + (where or ""))
            if frame["function"].split(".")[-1] == test:
                break
        return " ← ".join(shown)
