// Work for the C++ compiler: `c++ -std=c++17 -O2 -c templates.cpp` keeps cc1plus busy for some seconds with what real code
// includes and instantiates. It also runs (deterministic, prints one line), but it is the compiler that is profiled.
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <tuple>
#include <unordered_map>
#include <variant>
#include <vector>

template <int N> struct Key {
    int value;
    std::string name;
    friend bool operator<(const Key &a, const Key &b) { return std::tie(a.value, a.name) < std::tie(b.value, b.name); }
};

// One set of containers and algorithms per N: each is a type of its own for the compiler.
template <int N> struct Ledger {
    using Value = std::variant<int, double, std::string, std::vector<Key<N>>>;
    std::map<Key<N>, Value> entries;
    std::unordered_map<std::string, std::shared_ptr<std::set<Key<N>>>> groups;

    void add(int i) {
        Key<N> key{i * N % 17, "key" + std::to_string(i)};
        auto &group = groups[key.name.substr(0, 4)];
        if (!group) group = std::make_shared<std::set<Key<N>>>();
        group->insert(key);
        if (i % 3 == 0) entries.emplace(key, i);
        else if (i % 3 == 1) entries.emplace(key, i / 2.0);
        else entries.emplace(key, std::vector<Key<N>>{key, key});
    }

    std::size_t total() const {
        std::vector<std::pair<Key<N>, std::size_t>> sizes;
        for (const auto &[key, value] : entries)
            sizes.emplace_back(key, std::visit([](const auto &v) { return sizeof v; }, value));
        std::stable_sort(sizes.begin(), sizes.end(), [](const auto &a, const auto &b) {
            return std::tie(b.second, a.first) < std::tie(a.second, b.first);
        });
        std::function<std::size_t(std::size_t, const std::pair<Key<N>, std::size_t> &)> add_up =
            [](std::size_t sum, const auto &pair) { return sum * 31 % 65521 + pair.second; };
        return std::accumulate(sizes.begin(), sizes.end(), std::size_t{N}, add_up);
    }
};

template <int... Ns> std::size_t all(std::integer_sequence<int, Ns...>) {
    std::size_t sum = 0;
    auto one = [&sum](auto ledger) {
        for (int i = 0; i < 50; ++i) ledger.add(i);
        sum += ledger.total();
    };
    (one(Ledger<Ns + 1>{}), ...);
    return sum;
}

int main() {
    const std::regex words("([a-z]+)([0-9]+)(?:-([a-z]+))?");
    std::ostringstream text;
    for (int i = 0; i < 20; ++i) text << "word" << i << (i % 2 ? "-tail " : " ");
    const std::string input = text.str();
    const auto found = std::distance(std::sregex_iterator(input.begin(), input.end(), words), std::sregex_iterator());
    std::cout << found << ' ' << all(std::make_integer_sequence<int, 1>{}) << '\n';
    return 0;
}
