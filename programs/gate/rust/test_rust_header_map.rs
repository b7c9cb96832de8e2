//! Builds a HashMap of headers, looks up in it and replaces one value.
//!
//! 1000 operations x (1 table with room for 5 + 5 keys + 5 values + 1 value that replaces another) = 12000. Looking up
//! by &str = 0. The seed of the hashes lies in the thread, and the table's size does not depend on it.
//!
//! expect: allocations=12000 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};
use std::collections::HashMap;

const OPS: usize = 1000;

const HEADERS: [(&str, &str); 5] = [
    ("host", "localhost"),
    ("user-agent", "gate"),
    ("accept", "*/*"),
    ("content-type", "text/plain"),
    ("content-length", "100"),
];

fn build() -> HashMap<String, String> {
    let mut headers = HashMap::with_capacity(HEADERS.len());
    for (name, value) in HEADERS {
        headers.insert(name.to_owned(), value.to_owned());
    }
    headers
}

fn run() {
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        let mut headers = build();
        *headers.get_mut("content-length").unwrap() = "2".to_owned();
        let headers = keep(headers);
        assert!(headers["content-length"] == "2" && !headers.contains_key("cookie") && operation < OPS);
        #[cfg(seed_alloc)]
        drop(keep(Box::new([0u8; 24]))); // SEED_ALLOC
        #[cfg(seed_leak)]
        if operation % 100 == 0 {
            Box::leak(keep(Box::new([0u8; 40]))); // SEED_LEAK
        }
    }
}

fn main() {
    ops(OPS as u64);
    measure("header_map", run);
}
