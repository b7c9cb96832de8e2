//! With the C library's.

fn main() {
    allocators::work();
}
