/* Builds a small map of headers, looks up in it and replaces one value.
 *
 * Buckets lie in the map, key and value in the node.
 * 1000 operations x (1 map + 5 nodes + 1 node for the value that is replaced) = 7000.
 *
 * expect: allocations=7000 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, BUCKETS = 8, HEADERS = 5 };

struct node {
    struct node *next;
    const char *value;
    char key[];
};

struct map {
    struct node *buckets[BUCKETS];
};

static const char *const headers[HEADERS][2] = {{"host", "localhost"},
                                                {"user-agent", "gate"},
                                                {"accept", "*/*"},
                                                {"content-type", "text/plain"},
                                                {"content-length", "100"}};

static unsigned bucket_of(const char *key) {
    unsigned hash = 5381;
    while (*key) hash = hash * 33 + (unsigned char)*key++;
    return hash % BUCKETS;
}

static struct node **find(struct map *map, const char *key) {
    struct node **at = &map->buckets[bucket_of(key)];
    while (*at && strcmp((*at)->key, key) != 0) at = &(*at)->next;
    return at;
}

static void set(struct map *map, const char *key, const char *value) {
    struct node **at = find(map, key), *old = *at;
    size_t key_bytes = strlen(key) + 1;
    struct node *node = gate_block(sizeof *node + key_bytes + strlen(value) + 1);
    memcpy(node->key, key, key_bytes);
    node->value = strcpy(node->key + key_bytes, value);
    node->next = old ? old->next : NULL;
    *at = node;
    free(old);
}

static void map_free(struct map *map) {
    int i;
    for (i = 0; i < BUCKETS; i++) {
        while (map->buckets[i]) {
            struct node *node = map->buckets[i];
            map->buckets[i] = node->next;
            free(node);
        }
    }
    free(map);
}

static void run(void *context) {
    int operation, i;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct map *map = gate_block(sizeof *map);
        memset(map, 0, sizeof *map);
        for (i = 0; i < HEADERS; i++) set(map, headers[i][0], headers[i][1]);
        set(map, "content-length", "2");
        GATE_EXPECT(strcmp((*find(map, "content-length"))->value, "2") == 0);
        GATE_EXPECT(*find(map, "cookie") == NULL);
        map_free(map);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
}

int main(void) {
    gate_start(OPS);
    mallow_measure("header_map", run, NULL);
    return 0;
}
