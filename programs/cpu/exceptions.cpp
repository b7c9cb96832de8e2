// Throws through frames that own memory, again and again: an unwinder's hard case, and time that is spent in one.
//
// exceptions ROUNDS
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>

struct Owner {
    std::string text;
    explicit Owner(int depth) : text(40 + depth, 'x') {}
};

[[gnu::noinline]] int thrown(int depth, int round) {
    Owner owner(depth);
    if (depth == 0) {
        if (round % 3 == 0)
            throw std::runtime_error(owner.text);
        return static_cast<int>(owner.text.size());
    }
    return thrown(depth - 1, round) + 1;
}

[[gnu::noinline]] int counted(std::map<std::string, int> &counts, int round) {
    try {
        return counts["depth " + std::to_string(thrown(round % 20, round))]++;
    } catch (const std::exception &error) {
        return counts[error.what()]++;
    }
}

int main(int count, char **words) {
    int rounds = count > 1 ? std::atoi(words[1]) : 1000;
    std::map<std::string, int> counts;
    long sum = 0;
    for (int round = 0; round < rounds; round++)
        sum += counted(counts, round);
    std::printf("%ld %zu\n", sum, counts.size());
}
