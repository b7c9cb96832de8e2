//! How a class is named, what differs.

use super::*;
use crate::sample::environment;

#[test]
fn a_class_is_a_file_name() {
    assert_eq!(environment().class_name(), "x86_64-glibc2.36-native-libc-2cpu-c1");
    let python = Environment { runtime: "python 3.11".to_owned(), ..environment() };
    assert_eq!(python.class_name(), "x86_64-glibc2.36-python3.11-libc-2cpu-c1");
    let odd = Environment { runtime: "../a b-c".to_owned(), allocator: String::new(), ..environment() };
    assert_eq!(odd.class_name(), "x86_64-glibc2.36-.._ab_c-unknown-2cpu-c1");
}

#[test]
fn each_difference_is_a_clause() {
    assert_eq!(environment().differences(&environment()), [""; 0]);
    let other = Environment {
        architecture: "aarch64".to_owned(),
        libc: "musl 1.2.3".to_owned(),
        runtime: "python 3.11".to_owned(),
        allocator: String::new(),
        processors: 1,
        counting: 2,
    };
    assert_eq!(
        other.differences(&environment()),
        [
            "its architecture is aarch64, here it is x86_64",
            "its libc is musl 1.2.3, here it is glibc 2.36",
            "its runtime is python 3.11, here it is native",
            "its allocator is unknown, here it is libc",
            "it is for 1 processor, here are 2",
            "its counting rules are version 2, here they are version 1",
        ]
    );
}
