//! The `mallow` command.
fn main() {}
