//! Two threads that count words, each in a map of its own: text, vectors that grow, tables that grow.

use std::collections::HashMap;

fn words(seed: u64, count: usize) -> HashMap<String, Vec<usize>> {
    let mut places: HashMap<String, Vec<usize>> = HashMap::new();
    let mut state = seed;
    for place in 0..count {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let word = format!("word-{}", (state >> 33) % 20_000);
        places.entry(word).or_default().push(place);
    }
    places
}

fn main() {
    let _profile = inside_cost::profile();
    let rounds = inside_cost::rounds();
    let found: usize = std::thread::scope(|scope| {
        let work = |seed| scope.spawn(move || (0..rounds).map(|_| words(seed, 60_000).len()).sum::<usize>());
        let threads = [work(1), work(2)];
        threads.map(|thread| thread.join().unwrap_or(0)).iter().sum()
    });
    println!("{found}");
}
