/* What every hazard program shares. Nothing in here allocates: output goes through write(2), because stdio
 * would allocate its own buffer and so appear in the figures. */
#ifndef HAZARD_H
#define HAZARD_H
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A function that keeps its own frame and its own name, whatever the optimiser thinks of it: not inlined, not
 * cloned, not folded with a twin. */
#if defined(__GNUC__) && !defined(__clang__)
#define FRAME __attribute__((noinline, noclone, noipa))
#else
#define FRAME __attribute__((noinline))
#endif

/* The pointer escapes, so that the allocation behind it cannot be removed. */
#define KEEP(pointer) __asm__ volatile("" : : "r"(pointer) : "memory")

/* Stands after the last call of a function whose frame must be seen: no tail call can replace it. */
#define STAY() __asm__ volatile("" : : : "memory")

/* Stops the program with a status that names a failed expectation of the program itself. */
#define EXPECT(condition, status)                                                                                      \
    do {                                                                                                               \
        if (!(condition)) _exit(status);                                                                               \
    } while (0)

static inline void say(const char *text) {
    size_t length = strlen(text);
    if (write(1, text, length) != (ssize_t)length) _exit(90);
}

/* Prints "name value\n". */
static inline void say_figure(const char *name, unsigned long value) {
    char line[64], digits[24];
    size_t at = 0, count = 0;
    while (*name && at < 32) line[at++] = *name++;
    line[at++] = ' ';
    do digits[count++] = (char)('0' + value % 10);
    while (value /= 10);
    while (count) line[at++] = digits[--count];
    line[at++] = '\n';
    line[at] = 0;
    say(line);
}
#endif
