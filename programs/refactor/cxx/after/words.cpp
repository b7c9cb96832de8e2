// Counts words, after its code was tidied up: Words is now WordCounter, list was split, fill has a lambda more before the one
// that adds, and everything stands at other lines. What it allocates is the same, but for the note that main now keeps.
// See ../../README.md.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace {

struct Entry {
    std::string word;
    int times = 0;
};

std::string word_of(int number) {
    return "a word that is too long for the string itself " + std::to_string(number % 40);
}

class WordCounter {
  public:
    void add(const std::string &word) { counts_[word]++; }

    std::vector<std::unique_ptr<Entry>> list() const {
        std::vector<std::unique_ptr<Entry>> entries;
        for (const auto &[word, times] : counts_)
            entries.push_back(entry_of(word, times));
        return entries;
    }

  private:
    __attribute__((noinline)) static std::unique_ptr<Entry> entry_of(const std::string &word, int times) {
        auto entry = std::make_unique<Entry>();
        entry->word = word;
        entry->times = times;
        return entry;
    }

    std::map<std::string, int> counts_;
};

void for_each_number(int count, const std::function<void(int)> &call) {
    for (int number = 0; number < count; number++)
        call(number);
}

int fill(WordCounter &counter) {
    int numbers = 0;
    for_each_number(10, [&](int) { numbers++; });
    for_each_number(200, [&](int number) { counter.add(word_of(number)); });
    return numbers;
}

} // namespace

int main() {
    WordCounter counter;
    int numbers = fill(counter);
    auto note = std::make_unique<char[]>(80);
    note[79] = static_cast<char>(numbers);
    auto entries = counter.list();
    std::sort(entries.begin(), entries.end(), [](auto &a, auto &b) { return a->word > b->word; });
    return entries.size() == 40 && entries.front()->times == 5 && note[79] == 10 ? 0 : 1;
}
