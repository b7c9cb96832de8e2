#!/bin/sh
# Shows a report as one comment on a pull or merge request: the first run writes it, every later one replaces its text.
#
#   MALLOW_REPORT  the Markdown
#   MALLOW_NAME    what tells the comments of several suites apart: letters, digits, `.`, `_`, `-`; `mallow` if it is empty
#   MALLOW_TOKEN   may write comments. Where there is none, or it may not, that is said, and the job goes on
#
# Of GitHub's jobs: GITHUB_API_URL, GITHUB_REPOSITORY, GITHUB_EVENT_PATH, and MALLOW_AUTHOR, whose comments may be replaced.
# Of GitLab's: CI_API_V4_URL, CI_MERGE_REQUEST_PROJECT_ID, CI_MERGE_REQUEST_IID.
#
# Needs curl and jq. The token is in no argument, and what comes from the request is never a command and never a part of an
# address unless it is a number.
set -eu

fail() {
    printf 'mallow: %s\n' "$1" >&2
    exit 1
}

# Ends well: a missing right is no fault of the code that was checked.
pass() {
    printf 'mallow: %s\n' "$1" >&2
    exit 0
}

# `is PATTERN TEXT`: the whole text is as the pattern of grep says, and has one line.
is() {
    [ "$(printf '%s' "$2" | wc -l)" -eq 0 ] && printf '%s' "$2" | grep -Eqx -- "$1"
}

report=${MALLOW_REPORT:?MALLOW_REPORT names the report}
name=${MALLOW_NAME:-mallow}
for tool in curl jq; do
    command -v "$tool" > /dev/null || fail "a comment needs $tool, which is not here."
done
is '[A-Za-z0-9._-]+' "$name" || fail "a comment's name has letters, digits, '.', '_' and '-' only."
[ -f "$report" ] || pass "there is no report to show; no comment is written."
[ -n "${MALLOW_TOKEN:-}" ] || pass "there is no token for comments; no comment is written."

umask 077
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
trap 'exit 1' HUP INT TERM

# Where the comments are: `list`, whose pages are counted from 1, `new`, and `change`, followed by a comment's number.
if [ -n "${GITHUB_ACTIONS:-}" ]; then
    api=${GITHUB_API_URL:?}
    is '[A-Za-z0-9._-]+/[A-Za-z0-9._-]+' "${GITHUB_REPOSITORY:?}" || fail "GITHUB_REPOSITORY is no repository."
    number=$(jq -r '.pull_request.number // empty' < "${GITHUB_EVENT_PATH:?}")
    commit=$(jq -r '.pull_request.head.sha // empty' < "$GITHUB_EVENT_PATH")
    issues=$api/repos/$GITHUB_REPOSITORY/issues
    new=$issues/$number/comments
    change=$issues/comments
    method=PATCH
    order=
    printf 'Authorization: Bearer %s\nAccept: application/vnd.github+json\n' "$MALLOW_TOKEN" > "$folder/headers"
else
    api=${CI_API_V4_URL:?neither GitHub nor GitLab runs this job}
    project=${CI_MERGE_REQUEST_PROJECT_ID:-}
    number=${CI_MERGE_REQUEST_IID:-}
    commit=${CI_COMMIT_SHA:-}
    [ -z "$number" ] || is '[0-9]+' "$project" || fail "CI_MERGE_REQUEST_PROJECT_ID is no number."
    new=$api/projects/$project/merge_requests/$number/notes
    change=$new
    method=PUT
    order='&sort=asc&order_by=created_at'
    printf 'PRIVATE-TOKEN: %s\n' "$MALLOW_TOKEN" > "$folder/headers"
fi
[ -n "$number" ] || pass "this job is not of a pull or merge request; no comment is written."
is '[0-9]+' "$number" || fail "the request's number is no number."
is 'https?://[^[:space:]]+' "$api" || fail "the interface's address is no address."
printf 'Content-Type: application/json\n' >> "$folder/headers"

# `ask METHOD ADDRESS [FILE]`: the answer is in $folder/answer, its status in $status. Only what can be repeated is.
ask() {
    again=0
    [ "$1" = POST ] || again=2
    if [ "$#" -eq 3 ]; then set -- "$1" "$2" --data-binary "@$3"; else set -- "$1" "$2"; fi
    verb=$1 address=$2
    shift 2
    status=$(curl --silent --show-error --globoff --max-time 60 --retry "$again" --request "$verb" --header "@$folder/headers" \
        --output "$folder/answer" --write-out '%{http_code}' "$@" --url "$address") ||
        fail "$verb $address: there is no answer."
    case $status in
    2??) ;;
    401 | 403) pass "the token may not write comments here ($status); no comment is written." ;;
    *) fail "$verb $address: the answer is $status." ;;
    esac
}

# Whose comments may be replaced: anybody can write one that begins as ours does.
if [ -n "${GITHUB_ACTIONS:-}" ]; then
    author=${MALLOW_AUTHOR:-github-actions[bot]}
else
    ask GET "$api/user"
    author=$(jq -r '.id' < "$folder/answer")
fi

marker="<!-- mallow check: $name -->"
{
    printf '%s\n' "$marker"
    cat "$report"
    if is '[0-9a-f]{7,64}' "$commit"; then
        printf '\nOf commit %s.\n' "$commit"
    fi
} | jq -Rs '{body: .[0:65000]}' > "$folder/body"

page=1
found=
while [ -z "$found" ]; do
    ask GET "$new?per_page=100&page=$page$order"
    found=$(jq -r --arg marker "$marker" --arg author "$author" '
        map(select((.body // "" | startswith($marker)) and
            ((.user.login // (.author.id | tostring)) == $author)))
        | first | .id // empty' < "$folder/answer")
    [ "$(jq length < "$folder/answer")" -eq 100 ] || break
    page=$((page + 1))
done

if [ -z "$found" ]; then
    ask POST "$new" "$folder/body"
    echo "mallow: the comment is written." >&2
else
    is '[0-9]+' "$found" || fail "the comment's number is no number."
    ask "$method" "$change/$found" "$folder/body"
    echo "mallow: the comment is replaced." >&2
fi
