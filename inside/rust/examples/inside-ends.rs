//! Ends in the way that its second argument names, in the middle of a profile from inside that its first one names.

use mallow_alloc::{Mallow, profile};
use std::alloc::System;
use std::hint::black_box;

#[global_allocator]
static ALLOC: Mallow<System> = Mallow::new(System);

#[inline(never)]
fn allocate(count: usize) {
    for _ in 0..count {
        drop(black_box(Box::new([0u8; 24])));
    }
}

#[expect(clippy::disallowed_methods, reason = "whether `exit` costs the profile is the question")]
fn main() {
    let (path, way) = (std::env::args().nth(1).unwrap(), std::env::args().nth(2).unwrap());
    let kept = profile(&path);
    allocate(500);
    match way.as_str() {
        "returns" => {}
        "exits" => std::process::exit(3),
        "panics" => panic!("on purpose"),
        "killed" => {
            // Long enough for the collector to have written something.
            std::thread::sleep(std::time::Duration::from_millis(700));
            // SAFETY: ends the process.
            unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
        }
        "long" => {
            // Long enough for names to be looked up; and then there is a new one.
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(black_box(vec![7u8; 300]));
            let own = std::fs::read_dir("/proc/self/task").unwrap();
            let names = own.map(|task| std::fs::read_to_string(task.unwrap().path().join("comm")).unwrap());
            print!("{}", names.collect::<String>());
            drop(kept);
            // The threads of a profile end with it.
            println!("{}", std::fs::read_dir("/proc/self/task").unwrap().count());
            return;
        }
        "forks" => {
            // SAFETY: the child allocates, and its allocator is the system's.
            let child = unsafe { libc::fork() };
            allocate(70);
            if child != 0 {
                // SAFETY: waits for the child, which has returned from `main`.
                unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            }
        }
        "fork-profiles" => {
            // SAFETY: as above.
            let child = unsafe { libc::fork() };
            if child == 0 {
                let own = profile(format!("{path}.child"));
                allocate(33);
                drop(own);
                std::process::exit(0);
            }
            // SAFETY: as above.
            unsafe { libc::waitpid(child, std::ptr::null_mut(), 0) };
            allocate(70);
        }
        "again" => {
            drop(kept);
            allocate(1_000);
            let second = profile(format!("{path}.second"));
            allocate(7);
            drop(second);
            return;
        }
        "twice" => {
            // The first one goes on.
            drop(profile(format!("{path}.second")));
            allocate(11);
        }
        way => panic!("no such way: {way}"),
    }
    drop(kept);
}
