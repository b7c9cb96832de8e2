/* Touches 500 new pages in `touch`: as many page faults, whatever else there are. */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/mman.h>

#define PAGE 4096L
#define PAGES 500

__attribute__((noinline)) void touch(volatile char *memory, int pages) {
    for (int i = 0; i < pages; i++)
        memory[i * PAGE] = 1;
}

int main(void) {
    char *memory = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(memory, (PAGES + 1) * PAGE, MADV_NOHUGEPAGE);
    /* The function's own page is there before it counts. */
    touch(memory, 0);
    touch(memory + PAGE, PAGES);
    return 0;
}
