inside dpkg --install "/packages/mallow_${VERSION}_amd64.deb" >"$WORK/dpkg"
[ "$(inside dpkg-query --show --showformat '${Version}' mallow)" = "$VERSION" ] || fail "dpkg does not know mallow $VERSION."
inside sh -c 'test -s /usr/share/man/man1/mallow-record.1.gz && test -s /usr/share/bash-completion/completions/mallow' ||
    fail "man pages or completions are not there."
records 'opendir\|setlocale' ls /
records Perl_ perl -e 'my %h; $h{$_} = "x" x 100 for 1 .. 1000; print scalar keys %h'
inside dpkg --purge mallow >"$WORK/dpkg"
is_gone
