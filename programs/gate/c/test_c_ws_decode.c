/* Decodes WebSocket frames from a stream that arrives in pieces of 100 bytes.
 *
 * 1 decoder + 1000 operations x (1 frame + 1 payload) = 2001.
 *
 * expect: allocations=2001 remaining=0 descriptors=0 ops=1000
 */
#include "gate.h"

enum { OPS = 1000, PAYLOAD = 40, FRAME = 2 + 4 + PAYLOAD, PIECE = 100, HELD_MAX = FRAME + PIECE };

struct frame {
    unsigned char opcode;
    size_t length;
    unsigned char *payload;
};

struct decoder {
    size_t held;
    unsigned char bytes[HELD_MAX];
};

static struct frame *next_frame(struct decoder *decoder) {
    unsigned char *bytes = decoder->bytes;
    struct frame *frame;
    size_t length, i;
    if (decoder->held < 6 || decoder->held < 6u + (bytes[1] & 0x7f)) return NULL;
    length = bytes[1] & 0x7f;
    frame = gate_block(sizeof *frame);
    frame->opcode = bytes[0] & 0x0f;
    frame->length = length;
    frame->payload = gate_block(length);
    for (i = 0; i < length; i++) frame->payload[i] = bytes[6 + i] ^ bytes[2 + i % 4];
    decoder->held -= 6 + length;
    memmove(bytes, bytes + 6 + length, decoder->held);
    return frame;
}

static void run(void *stream) {
    struct decoder *decoder = gate_block(sizeof *decoder);
    size_t at, piece, end = (size_t)OPS * FRAME;
    int operation = 0;
    decoder->held = 0;
    GATE_SEED_FD(); /* SEED_FD */
    for (at = 0; at < end; at += piece) {
        struct frame *frame;
        piece = end - at < PIECE ? end - at : PIECE;
        memcpy(decoder->bytes + decoder->held, (unsigned char *)stream + at, piece);
        decoder->held += piece;
        while ((frame = next_frame(decoder))) {
            GATE_EXPECT(frame->opcode == 2 && frame->length == PAYLOAD && frame->payload[39] == 'z');
            free(frame->payload);
            free(frame);
            GATE_SEED_ALLOC();         /* SEED_ALLOC */
            GATE_SEED_LEAK(operation); /* SEED_LEAK */
            operation++;
        }
    }
    GATE_EXPECT(operation == OPS);
    free(decoder);
}

int main(void) {
    static unsigned char stream[OPS * FRAME];
    static const unsigned char head[6] = {0x82, 0x80 | PAYLOAD, 1, 2, 3, 4};
    size_t i, j;
    for (i = 0; i < sizeof stream; i += FRAME) {
        memcpy(stream + i, head, sizeof head);
        for (j = 0; j < PAYLOAD; j++) stream[i + 6 + j] = 'z' ^ head[2 + j % 4];
    }
    gate_start(OPS);
    mallow_measure("ws_decode", run, stream);
    return 0;
}
