/* What a header's name in small letters costs: 1000 operations x 1 copy = 1000. */
#include "header.h"
#include "mallow.h"

static void run(void *name) {
    int operation;
    for (operation = 0; operation < 1000; operation++) {
        char *canonical = header_canonical(name);
        mallow_keep(canonical);
        free(canonical);
    }
}

int main(void) {
    char name[] = "Content-Length";
    mallow_ops(1000);
    mallow_measure("canonical", run, name);
    return 0;
}
