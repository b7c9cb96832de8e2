# The image is built from its Dockerfile, over Debian 12's root in place of a registry's image, and a program is recorded in a container of it.
store="--root $WORK/store --runroot $WORK/run --storage-driver vfs"
build="buildah $store"
below=$($build from scratch)
$build copy --quiet "$below" "$BASE" / >"$WORK/copied"
$build commit --quiet "$below" localhost/debian >"$WORK/committed"
$build rm "$below" >"$WORK/removed"
$build build --isolation chroot --pull-never --build-arg BASE=localhost/debian --file "$PACKAGES/Dockerfile" --tag localhost/mallow "$PACKAGES" >"$WORK/built" 2>&1 || {
    cat "$WORK/built" >&2
    fail "the image cannot be built."
}
container=$($build from --pull-never localhost/mallow)
R=$($build mount "$container")
mkdir -p "$R/tmp/home"
inside() { $build run --isolation chroot --env HOME=/tmp/home --env LC_ALL=C.UTF-8 "$container" -- "$@"; }
entry=$($build inspect --type image --format '{{index .OCIv1.Config.Entrypoint 0}}' localhost/mallow)
[ "$entry" = mallow ] || fail "the image's program is \`$entry\`."
[ ! -e "$R/packages" ] || [ -z "$(ls "$R/packages")" ] || fail "the image holds the package."
records 'opendir\|setlocale' ls /
# What an init container needs, which puts the program into a volume.
inside cp /usr/bin/mallow /tmp/mallow
$build rm "$container" >"$WORK/removed"
