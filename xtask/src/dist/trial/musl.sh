# A root with musl and no other C library: Debian's own build of it, and programs that its wrapper of gcc made.
# The path of this system's chroot is found before the root's own PATH is set, which has no folder for it.
CHROOT=$(command -v chroot)
inside() { env -i PATH=/bin HOME=/tmp/home "$CHROOT" "$R" "$@"; }
mkdir -p "$R/bin" "$R/lib"
tar -xzf "$PACKAGES/mallow-$VERSION-x86_64-linux.tar.gz" -C "$R" --strip-components=1
install -m 755 /lib/ld-musl-x86_64.so.1 "$R/lib/"
cat >"$WORK/program.c" <<'END'
#include <stdio.h>
#include <stdlib.h>

__attribute__((noinline)) static void *fill_the_cache(int size) { return malloc(size); }

int main(void) {
    for (int i = 0; i < 1000; i++) {
        void *block = fill_the_cache(i);
        if (i % 2) free(block);
    }
    puts("done");
}
END
musl-gcc -g -O1 -o "$R/bin/program" "$WORK/program.c"
musl-gcc -g -O1 -static -o "$R/bin/static-program" "$WORK/program.c"
records fill_the_cache program
grep -q 'program.c:4' "$WORK/report" || fail "the report does not name the line."
records fill_the_cache static-program
