# A root where nothing is that was not put there: a fresh layer over BASE, in a mount namespace that ends with this shell.
# PACKAGES is what `cargo xtask dist` made, WORK an empty folder, R the root.
R=$WORK/root
mkdir -p "$WORK/upper" "$WORK/work" "$R"
mount -t overlay overlay -o "lowerdir=$BASE,upperdir=$WORK/upper,workdir=$WORK/work" "$R"
mkdir -p "$R/packages" "$R/proc" "$R/dev" "$R/tmp/home"
chmod 1777 "$R/tmp"
mount --bind -o ro "$PACKAGES" "$R/packages"
mount -t proc proc "$R/proc"
mount --rbind /dev "$R/dev"

# Runs a command in the root.
inside() {
    env -i PATH="$PLACE:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin" HOME=/tmp/home LC_ALL=C.UTF-8 chroot "$R" "$@"
}
PLACE=/usr/local/bin

fail() {
    echo "$1" >&2
    exit 1
}

# Records a command, reports it, and looks for a name in the report.
records() {
    name=$1
    shift
    rm -f "$R/tmp/trace.mallow"
    inside mallow record -o /tmp/trace.mallow -- "$@" >"$WORK/out" 2>"$WORK/summary" || {
        cat "$WORK/summary" >&2
        fail "\`mallow record $*\` failed."
    }
    inside mallow report /tmp/trace.mallow >"$WORK/report" || fail "\`mallow report\` failed."
    grep -q "$name" "$WORK/report" || {
        cat "$WORK/summary" "$WORK/report" >&2
        fail "the report of \`$*\` does not name $name."
    }
}

# Nothing of mallow is left but what it keeps in its user's cache.
is_gone() {
    left=$(find "$WORK/upper" -path "$WORK/upper/packages" -prune -o -name '*mallow*' -type f -print |
        grep -v -e /tmp/ || true)
    [ -z "$left" ] || fail "these are left: $left"
    ! inside mallow --version >/dev/null 2>&1 || fail "mallow still runs."
}
