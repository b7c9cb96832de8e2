/* Splits the value of an HTTP header at its commas and trims the parts.
 *
 * 1000 operations x (1 array of 4 pointers + 4 strings) = 5000.
 *
 * expect: allocations=5000 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000 };

struct parts {
    char **items;
    size_t count;
};

static char *trimmed_copy(const char *from, const char *to) {
    char *copy;
    while (from < to && *from == ' ') from++;
    while (to > from && to[-1] == ' ') to--;
    copy = gate_block((size_t)(to - from) + 1);
    memcpy(copy, from, (size_t)(to - from));
    copy[to - from] = 0;
    return copy;
}

static struct parts split(const char *value) {
    struct parts parts = {NULL, 0};
    size_t count = 1;
    const char *at, *comma;
    for (at = value; *at; at++) count += *at == ',';
    parts.items = gate_block(count * sizeof *parts.items);
    for (at = value; (comma = strchr(at, ',')); at = comma + 1) parts.items[parts.count++] = trimmed_copy(at, comma);
    parts.items[parts.count++] = trimmed_copy(at, at + strlen(at));
    return parts;
}

static void run(void *value) {
    int operation;
    size_t i;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct parts parts = split(value);
        GATE_EXPECT(parts.count == 4 && strcmp(parts.items[1], "max-age=60") == 0);
        for (i = 0; i < parts.count; i++) free(parts.items[i]);
        free(parts.items);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    static char value[] = "no-cache,  max-age=60 ,must-revalidate, private";
    gate_start(OPS);
    mallow_measure("header_split", run, value);
    return 0;
}
