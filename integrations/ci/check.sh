#!/bin/sh
# Runs `mallow check` in a job and leaves its reports in a folder, whatever the verdict: report.json, report.md, junit.xml.
#
#   MALLOW_SUITE      as `mallow check` takes it; the current folder if it is empty
#   MALLOW_ARGUMENTS  more arguments of `mallow check`, one a line
#   MALLOW_OUT        the folder
#   MALLOW_KEPT       report.json of an earlier run, with which this one is compared; it may be absent
#   MALLOW_KEEP       `true` if this run is what later ones are compared with. Then it is measured and held against limits
#                     and the repository's baselines only, and that there are none (3) is no failure
#
# Ends with the status of `mallow check`. No variable is ever read as a command, and no report is shown where the runner of
# a job would read commands in it.
set -eu

out=${MALLOW_OUT:?MALLOW_OUT names the folder of the reports}
suite=${MALLOW_SUITE:-.}
# Not a flag, whatever it is called.
case $suite in -*) suite=./$suite ;; esac
mkdir -p "$out"
rm -f "$out/report.json" "$out/report.md" "$out/junit.xml"

arguments=${MALLOW_ARGUMENTS:-}
set --
while IFS= read -r argument; do
    [ -z "$argument" ] || set -- "$@" "$argument"
done << END
$arguments
END

kept=${MALLOW_KEPT:-}
keep=${MALLOW_KEEP:-false}
is_compared=false
if [ "$keep" != true ] && [ -n "$kept" ] && [ -f "$kept" ]; then
    # They are made anew from the report each time, so nothing that is no longer a test is left over. A CI may not make
    # baselines from its own run; these are of another one.
    rm -rf "$out/baselines"
    CI=false GITHUB_ACTIONS=false GITHUB_STEP_SUMMARY='' \
        mallow check "$suite" --update --from "$kept" --baselines "$out/baselines" --baseline kept >&2 || :
    if [ -d "$out/baselines/@kept" ]; then
        set -- "$@" --baselines "$out/baselines" --baseline kept
        is_compared=true
    else
        echo "mallow: the kept report has no figures to compare with." >&2
    fi
elif [ "$keep" != true ] && [ -n "$kept" ]; then
    echo "mallow: no report is kept yet; limits and the repository's baselines are what counts." >&2
fi

status=0
mallow check "$suite" "$@" --json -o "$out/report.json" --markdown "$out/report.md" --junit "$out/junit.xml" ||
    status=$?

# The command that the report names would write baselines that exist in this job only.
if [ "$is_compared" = true ] && [ -f "$out/report.md" ]; then
    sed '/^To accept these values: /d' "$out/report.md" > "$out/report.md.new"
    printf '\nCompared with the last run of the branch that this goes into. A merge accepts these values.\n' >> "$out/report.md.new"
    mv "$out/report.md.new" "$out/report.md"
fi

# A report has names of functions and paths, and a line of a job's log can be a command to its runner.
if [ -f "$out/report.md" ]; then
    stop=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
    [ -z "${GITHUB_ACTIONS:-}" ] || printf '::stop-commands::%s\n' "$stop"
    cat "$out/report.md"
    [ -z "${GITHUB_ACTIONS:-}" ] || printf '::%s::\n' "$stop"
fi
if [ "$keep" = true ] && [ "$status" = 3 ]; then
    echo "mallow: inconclusive tests are no failure here: this run is what later ones are compared with." >&2
    status=0
fi
exit "$status"
