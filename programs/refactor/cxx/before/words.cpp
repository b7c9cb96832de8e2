// Counts words, before its code was tidied up. See ../../README.md.
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

class Words {
  public:
    void add(const std::string &word) { counts_[word]++; }

    std::vector<std::unique_ptr<Entry>> list() const {
        std::vector<std::unique_ptr<Entry>> entries;
        for (const auto &[word, times] : counts_) {
            auto entry = std::make_unique<Entry>();
            entry->word = word;
            entry->times = times;
            entries.push_back(std::move(entry));
        }
        return entries;
    }

  private:
    std::map<std::string, int> counts_;
};

std::string word_of(int number) {
    return "a word that is too long for the string itself " + std::to_string(number % 40);
}

void for_each_number(int count, const std::function<void(int)> &call) {
    for (int number = 0; number < count; number++)
        call(number);
}

void fill(Words &words) {
    for_each_number(200, [&](int number) { words.add(word_of(number)); });
}

} // namespace

int main() {
    Words words;
    fill(words);
    auto entries = words.list();
    std::sort(entries.begin(), entries.end(), [](auto &a, auto &b) { return a->word > b->word; });
    return entries.size() == 40 && entries.front()->times == 5 ? 0 : 1;
}
