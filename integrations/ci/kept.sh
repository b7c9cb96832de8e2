#!/bin/sh
# Fetches the report of the branch that a merge request is to go into, as GitLab keeps it: an artifact of the branch's last
# pipeline that passed. Where there is none, that is said, and the job goes on: nothing is compared with then.
#
#   MALLOW_KEPT   where to write it
#   MALLOW_FILE   its path in the job's artifacts
#   MALLOW_TOKEN  may read artifacts; without it, the job's own token is tried
#   and GitLab's CI_API_V4_URL, CI_PROJECT_ID, CI_JOB_NAME, CI_JOB_TOKEN, CI_MERGE_REQUEST_TARGET_BRANCH_NAME
#
# Needs curl and jq. A branch's name may be anything; it is only ever a part of an address, with its letters escaped.
set -eu

branch=${CI_MERGE_REQUEST_TARGET_BRANCH_NAME:-}
[ -n "$branch" ] || exit 0
for tool in curl jq; do
    command -v "$tool" > /dev/null || {
        printf 'mallow: the kept report needs %s, which is not here.\n' "$tool" >&2
        exit 2
    }
done

escaped() {
    printf '%s' "$1" | jq -Rsr @uri
}

umask 077
headers=$(mktemp)
trap 'rm -f "$headers"' EXIT
if [ -n "${MALLOW_TOKEN:-}" ]; then
    printf 'PRIVATE-TOKEN: %s\n' "$MALLOW_TOKEN" > "$headers"
else
    printf 'JOB-TOKEN: %s\n' "${CI_JOB_TOKEN:-}" > "$headers"
fi
mkdir -p "$(dirname "$MALLOW_KEPT")"
rm -f "$MALLOW_KEPT"
artifacts=${CI_API_V4_URL:?}/projects/$(escaped "${CI_PROJECT_ID:?}")/jobs/artifacts/$(escaped "$branch")
status=$(curl --silent --show-error --globoff --max-time 60 --retry 2 --header "@$headers" --output "$MALLOW_KEPT" \
    --write-out '%{http_code}' --url "$artifacts/raw/$MALLOW_FILE?job=$(escaped "${CI_JOB_NAME:?}")") || status=none
if [ "$status" != 200 ]; then
    rm -f "$MALLOW_KEPT"
    printf 'mallow: no report of the target branch can be had (%s).\n' "$status" >&2
fi
