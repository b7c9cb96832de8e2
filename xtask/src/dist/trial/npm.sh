inside npm install --global --silent --offline --no-audit --no-fund "/packages/mallow-profiler-$VERSION.tgz"
records 'opendir\|setlocale' ls /
# As a dependency of a project, its command is npx's.
inside mkdir /project
inside sh -c 'cd /project && npm init --yes >init && npm install --silent --offline --no-audit --no-fund "$1" && npx --no-install mallow --version >version' \
    sh "/packages/mallow-profiler-$VERSION.tgz"
grep -q "^mallow $VERSION" "$R/project/version" || fail "npx does not run mallow $VERSION."
rm -r "$R/project"
inside npm uninstall --global --silent mallow-profiler
is_gone
