// Runs a command to which the system refuses one of its calls, with EPERM. refused_call NUMBER COMMAND...
#include "refusals.h"

int main(int count, char **words) {
    if (count < 3) return 2;
    word(NUMBER);
    test(BPF_JEQ, strtoul(words[1], NULL, 10), 0, 1);
    answer(EPERM);
    return run(words + 2);
}
