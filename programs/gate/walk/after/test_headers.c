/* Collects the headers of a request in a list, a thousand times. */
#include "mallow.h"
#include <string.h>

struct list {
    const char **items;
    size_t count, room;
};

static void grow(struct list *list) {
    list->room = list->room + 1;
    list->items = realloc(list->items, list->room * sizeof *list->items);
    if (!list->items) abort();
}

static void push(struct list *list, const char *item) {
    if (list->count == list->room) grow(list);
    list->items[list->count++] = item;
}

static void collect(void *context) {
    const char *header = context;
    for (int operation = 0; operation < 1000; operation++) {
        struct list headers = {0};
        for (int i = 0; i < 16; i++) push(&headers, header);
        mallow_keep(headers.items);
        free(headers.items);
    }
}

int main(void) {
    static char header[] = "Accept: */*";
    mallow_ops(1000);
    mallow_measure("headers", collect, header);
    return 0;
}
