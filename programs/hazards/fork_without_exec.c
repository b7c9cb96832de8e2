/* Hazard: children that never exec, and their children.
 * Each is a process of its own, with an empty live set at its start; what was live in the parent is neither allocated
 * nor leaked by the child.
 *
 *   parent (status 0): parent_block 1,000 and 24, frees the 24 after the child has ended; keeps the 1,000;
 *                      allocations 2, bytes 1,024, frees 1, temporary 1 (the 24 came last), peak 1,024 in 2, leaked 1,000 in 1
 *   child (status 3):  child_block 200 and 300; frees the inherited 1,000, then the 300, after the grandchild has
 *                      ended; allocations 2, bytes 500, frees 2, temporary 1, peak 500 in 2, leaked 200 in 1
 *   grandchild (status 4): grandchild_block 7; frees the child's 200 and the parent's 24;
 *                      allocations 1, bytes 7, frees 2, temporary 0, peak 7 in 1, leaked 7 in 1 */
#include "hazard.h"
#include <sys/wait.h>

static FRAME void *parent_block(size_t size) { void *p = malloc(size); KEEP(p); return p; }
static FRAME void *child_block(size_t size) { void *p = malloc(size); KEEP(p); return p; }
static FRAME void grandchild_block(void) { void *p = malloc(7); KEEP(p); STAY(); }

static FRAME void wait_for(pid_t pid, int wanted) {
    int status;
    EXPECT(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == wanted, 20);
}

int main(void) {
    void *thousand = parent_block(1000), *small = parent_block(24);
    pid_t child = fork();
    if (child == 0) {
        void *first = child_block(200), *second = child_block(300);
        pid_t grandchild = fork();
        if (grandchild == 0) {
            grandchild_block();
            free(first);
            free(small);
            exit(4);
        }
        wait_for(grandchild, 4);
        free(thousand);
        free(second);
        exit(3);
    }
    wait_for(child, 3);
    free(small);
    KEEP(thousand);
    return 0;
}
