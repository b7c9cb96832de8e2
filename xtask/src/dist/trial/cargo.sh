# The compiler and what registries are reached with come from outside; sources come from the packages alone.
mkdir -p "$R/toolchain" "$R/etc/ssl/certs" "$R/tmp/home/.cargo" "$R/sources"
mount --bind -o ro "$SYSROOT" "$R/toolchain"
mount --bind -o ro /etc/ssl/certs "$R/etc/ssl/certs"
cat /etc/resolv.conf >"$R/etc/resolv.conf"
for crate in "$PACKAGES"/crates/*.crate; do tar -xzf "$crate" -C "$R/sources"; done
# What a registry would answer, until one has them.
{
    echo '[patch.crates-io]'
    while read -r name; do echo "$name = { path = \"/sources/$name-$VERSION\" }"; done <"$PACKAGES/crates/ORDER"
} >"$R/tmp/home/.cargo/config.toml"
PLACE=/toolchain/bin:/tmp/home/.cargo/bin
inside cargo install --quiet --jobs 2 --path "/sources/mallow-$VERSION" || fail "cargo install failed."
records 'opendir\|setlocale' ls /
inside cargo uninstall --quiet mallow
rm -r "$R/sources" "$R/tmp/home/.cargo"
is_gone
