/* Copy on write: the first write through a second handle copies the storage, further writes and reads do not.
 *
 * 1 storage + 1000 operations x 1 copy = 1001.
 *
 * expect: allocations=1001 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, BYTES = 128 };

struct storage {
    int owners;
    unsigned char bytes[BYTES];
};

static struct storage *retain(struct storage *storage) {
    storage->owners++;
    return storage;
}

static void release(struct storage *storage) {
    if (--storage->owners == 0) free(storage);
}

static void write_byte(struct storage **handle, size_t at, unsigned char value) {
    if ((*handle)->owners > 1) {
        struct storage *copy = gate_block(sizeof *copy);
        memcpy(copy->bytes, (*handle)->bytes, BYTES);
        copy->owners = 1;
        release(*handle);
        *handle = copy;
    }
    (*handle)->bytes[at] = value;
}

static void run(void *context) {
    struct storage *original = gate_block(sizeof *original);
    int operation;
    (void)context;
    original->owners = 1;
    memset(original->bytes, 7, BYTES);
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        struct storage *second = retain(original);
        write_byte(&original, 0, 7);
        write_byte(&original, 1, 7);
        write_byte(&second, 2, 8);
        GATE_EXPECT(original->bytes[2] == 7 && second->bytes[2] == 8);
        release(second);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    release(original);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("cow_copy", run, NULL);
    return 0;
}
