//! Nothing but blocks that are freed at once, as many millions of them as it is told: what an allocator costs. Under `mallow` no profile is begun, so
//! that nobody watches.

use std::hint::black_box;

#[cfg(feature = "off")]
#[global_allocator]
static ALLOC: mallow_alloc::Mallow<std::alloc::System> = mallow_alloc::Mallow::new(std::alloc::System);

fn main() {
    for index in 0..inside_cost::rounds() * 1_000_000 {
        black_box(Box::new([index as u64; 8]));
    }
}
