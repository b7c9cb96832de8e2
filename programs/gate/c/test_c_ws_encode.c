/* Encodes WebSocket frames: one with a mask into a buffer of its own, and one in place, because its buffer has room
 * for the head in front.
 *
 * 1 buffer with room + 1000 operations x 1 new buffer = 1001.
 *
 * expect: allocations=1001 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, PAYLOAD = 200, HEAD_MAX = 8 };

/* Writes the head of a frame with a payload of 126 to 65535 bytes and returns its length. */
static size_t write_head(unsigned char *at, size_t payload, const unsigned char *mask) {
    at[0] = 0x82;
    at[1] = (unsigned char)(126 | (mask ? 0x80 : 0));
    at[2] = (unsigned char)(payload >> 8);
    at[3] = (unsigned char)payload;
    if (mask) memcpy(at + 4, mask, 4);
    return mask ? 8 : 4;
}

static unsigned char *encode_new(const unsigned char *payload, const unsigned char *mask, size_t *length) {
    unsigned char *frame = gate_block(HEAD_MAX + PAYLOAD);
    size_t head = write_head(frame, PAYLOAD, mask), i;
    for (i = 0; i < PAYLOAD; i++) frame[head + i] = payload[i] ^ mask[i % 4];
    *length = head + PAYLOAD;
    return frame;
}

/* The frame begins where its head fits in front of the payload. */
static unsigned char *encode_in_place(unsigned char *with_room, size_t *length) {
    unsigned char *frame = with_room + HEAD_MAX - 4;
    *length = write_head(frame, PAYLOAD, NULL) + PAYLOAD;
    return frame;
}

static void run(void *context) {
    static const unsigned char mask[4] = {0x11, 0x22, 0x33, 0x44};
    unsigned char *with_room = gate_block(HEAD_MAX + PAYLOAD);
    int operation;
    (void)context;
    memset(with_room, 'a', HEAD_MAX + PAYLOAD);
    GATE_SEED_FD(); /* SEED_FD */
    for (operation = 0; operation < OPS; operation++) {
        size_t length, length_in_place;
        unsigned char *frame = encode_new(with_room + HEAD_MAX, mask, &length);
        unsigned char *in_place = encode_in_place(with_room, &length_in_place);
        GATE_EXPECT(length == 208 && frame[9] == ('a' ^ 0x22));
        GATE_EXPECT(length_in_place == 204 && in_place[4] == 'a');
        free(frame);
        GATE_SEED_ALLOC();         /* SEED_ALLOC */
        GATE_SEED_LEAK(operation); /* SEED_LEAK */
    }
    free(with_room);
}

int main(void) {
    gate_start(OPS);
    mallow_measure("ws_encode", run, NULL);
    return 0;
}
