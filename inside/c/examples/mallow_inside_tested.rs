//! The library for tests (`Cargo.toml`).

#[path = "../src/lib.rs"]
pub mod library;
