inside tar --extract --gzip --file "/packages/mallow-$VERSION-x86_64-linux.tar.gz" --directory /usr/local --strip-components=1
[ "$(inside mallow --version | head -n 1 | cut -d' ' -f1-2)" = "mallow $VERSION" ] || fail "\`mallow --version\` does not say $VERSION."
for there in share/man/man1/mallow-record.1 share/doc/mallow/THIRD-PARTY.txt share/zsh/site-functions/_mallow share/mallow/ci/check.sh bin/cargo-mallow; do
    [ -s "$R/usr/local/$there" ] || fail "$there is not there."
done
records 'opendir\|setlocale' ls /
records Perl_ perl -e 'my %h; $h{$_} = "x" x 100 for 1 .. 1000; print scalar keys %h'
inside mallow diff /tmp/trace.mallow /tmp/trace.mallow >"$WORK/diff" || fail "\`mallow diff\` failed."
inside tar --list --gzip --file "/packages/mallow-$VERSION-x86_64-linux.tar.gz" | cut -d/ -f2- | grep -v '/$\|^$' |
    while read -r file; do rm "$R/usr/local/$file"; done
is_gone
