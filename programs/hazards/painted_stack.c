/* Hazard: how much of a caller's stack a call takes. Coroutines have stacks of a few kilobytes, and a crash handler has 8,192 bytes.
 *
 * Each path runs on a stack of its own that was painted before; prints, for each, how many bytes of it were used:
 *   first    the first calls of a forked child: malloc and free
 *   steady   malloc, realloc and free, for the second time from the same place
 *   fresh    the same through functions that were not on a stack before, the C library's among them
 *   thread   the first calls of a thread, which runs the coroutine */
#include "hazard.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { STACK_BYTES = 65536 };
static const unsigned char PAINT = 0xa5;

static __thread void *outside __attribute__((tls_model("initial-exec")));
void enter(void *top, void (*entry)(void), void **save);
void leave(void *saved);
__asm__(".text\n"
        "enter: push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        " mov %rsp, (%rdx)\n mov %rdi, %rsp\n jmp *%rsi\n"
        "leave: mov %rdi, %rsp\n"
        " pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n ret\n");

static FRAME void cycle(void) {
    void *p = malloc(40);
    KEEP(p);
    p = realloc(p, 4000);
    KEEP(p);
    free(p);
    STAY();
}
static FRAME int compare(const void *a, const void *b) {
    cycle();
    return *(const int *)a - *(const int *)b;
}
static FRAME void other_cycle(void) {
    int two[] = {2, 1};
    qsort(two, 2, sizeof two[0], compare);
    STAY();
}
static void on_cycle(void) { cycle(); leave(outside); }
static void on_other_cycle(void) { other_cycle(); leave(outside); }

static FRAME unsigned long used(unsigned char *stack, void (*entry)(void)) {
    memset(stack, PAINT, STACK_BYTES);
    void **top = (void **)(stack + STACK_BYTES);
    top[-1] = NULL;
    enter(top - 1, entry, &outside);
    unsigned long at = 0;
    while (stack[at] == PAINT) at++;
    return STACK_BYTES - at;
}

static unsigned char *thread_stack;
static unsigned long thread_used;
static void *thread(void *ignored) {
    thread_used = used(thread_stack, on_cycle);
    return ignored;
}

static unsigned char *stack(void) {
    unsigned char *room = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT(room != MAP_FAILED, 2);
    return room;
}

int main(void) {
    unsigned char *room = stack();
    cycle(); /* the heap is there from now on */
    pid_t child = fork();
    if (child == 0) {
        say_figure("first", used(room, on_cycle));
        _exit(0);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && status == 0, 3);
    used(room, on_cycle);
    say_figure("steady", used(room, on_cycle));
    say_figure("fresh", used(room, on_other_cycle));
    thread_stack = stack();
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, thread, NULL) == 0 && pthread_join(other, NULL) == 0, 4);
    say_figure("thread", thread_used);
    return 0;
}
