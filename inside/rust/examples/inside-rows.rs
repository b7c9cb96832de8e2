//! Allocates by rows, under a profile from inside: the first argument names the file, a second one `dhat` the format.

use mallow_alloc::{Format, Mallow, builder, region};
use std::alloc::System;
use std::hint::black_box;
use std::process::ExitCode;

#[global_allocator]
static ALLOC: Mallow<System> = Mallow::new(System);

#[inline(never)]
fn row(bytes: usize) -> Vec<u8> {
    black_box(vec![7; bytes])
}

fn main() -> ExitCode {
    let path = std::env::args().nth(1).unwrap_or_else(|| "inside-rows.mallow".to_owned());
    let before = row(5);
    let format =
        if std::env::args().nth(2).as_deref() == Some("dhat") { Format::Dhat } else { Format::Mallow };
    let profile = match builder(&path).format(format).begin() {
        Ok(profile) => profile,
        Err(error) => {
            eprintln!("{error}");
            return ExitCode::from(2);
        }
    };
    drop(before);
    for _ in 0..1000 {
        drop(row(100));
    }
    let of_kept = region().unwrap();
    let kept: Vec<Vec<u8>> = (0..10).map(|_| row(64)).collect();
    let part = of_kept.stats();
    drop(of_kept);
    let whole = profile.stats().unwrap();
    for stats in [whole, part] {
        println!("{} {} {} {}", stats.allocations, stats.bytes, stats.peak_bytes, stats.live_blocks);
    }
    std::mem::forget(kept);
    ExitCode::SUCCESS
}
