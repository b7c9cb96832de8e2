/* Writes six values into a buffer that is large enough and reads five; two of the reads copy.
 *
 * 1 storage + 1000 operations x (1 copy of bytes + 1 copy of text) = 2001.
 *
 * expect: allocations=2001 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, CAPACITY = 256 };

struct buffer {
    unsigned char *bytes;
    size_t reader, writer;
};

static void put(struct buffer *buffer, const void *bytes, size_t length) {
    GATE_EXPECT(buffer->writer + length <= CAPACITY);
    memcpy(buffer->bytes + buffer->writer, bytes, length);
    buffer->writer += length;
}

static void put_number(struct buffer *buffer, uint64_t number, size_t bytes) {
    unsigned char digits[8];
    size_t i;
    for (i = 0; i < bytes; i++) digits[i] = (unsigned char)(number >> 8 * (bytes - 1 - i));
    put(buffer, digits, bytes);
}

static uint64_t get_number(struct buffer *buffer, size_t bytes) {
    uint64_t number = 0;
    while (bytes--) number = number << 8 | buffer->bytes[buffer->reader++];
    return number;
}

static char *get_copy(struct buffer *buffer, size_t length) {
    char *copy = gate_block(length + 1);
    memcpy(copy, buffer->bytes + buffer->reader, length);
    copy[length] = 0;
    buffer->reader += length;
    return copy;
}

static void read_write(struct buffer *buffer, uint64_t operation) {
    char *bytes, *text;
    buffer->reader = buffer->writer = 0;
    put_number(buffer, operation, 8);
    put_number(buffer, 7, 4);
    put_number(buffer, 2, 2);
    put(buffer, "0123456789abcdef", 16);
    put(buffer, "how are you", 11);
    put_number(buffer, 1, 1);
    GATE_EXPECT(get_number(buffer, 8) == operation);
    GATE_EXPECT(get_number(buffer, 4) == 7);
    GATE_EXPECT(get_number(buffer, 2) == 2);
    bytes = get_copy(buffer, 16);
    text = get_copy(buffer, 11);
    GATE_EXPECT(strcmp(text, "how are you") == 0);
    free(bytes);
    free(text);
}

static void run(void *context) {
    struct buffer buffer = {gate_block(CAPACITY), 0, 0};
    int operation;
    (void)context;
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        read_write(&buffer, (uint64_t)operation);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    free(buffer.bytes);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("buffer_rw", run, NULL);
    return 0;
}
