//! The modes by name. Each is a function that is called once a request, on the thread that answers it.

use crate::{bounded, leaks, native};
use std::any::Any;
use std::hint::black_box;
use std::sync::{Mutex, PoisonError};

/// What a server does.
pub struct Mode {
    /// Called with the number of each request, from 1 on; tells whether it went well.
    pub request: Box<dyn Fn(u64) -> bool + Send + Sync>,
    /// Called when a connection begins; what it returns lives as long as the connection.
    pub connection: Box<dyn Fn() -> Option<Box<dyn Any + Send>> + Send + Sync>,
}

/// Every mode.
pub const NAMES: &[&str] = &[
    "clean",
    "leak16",
    "leak1k",
    "leak1k_every64",
    "leak_vec",
    "leak_map",
    "leak_thread_local",
    "leak_fd",
    "leak_mmap",
    "leak_threads",
    "leak_idle",
    "cache_small",
    "cache_large",
    "cache_keyspace",
    "pool_highwater",
    "ratchet",
    "frag",
    "arena_retain",
    "lazy_init",
    "sawtooth",
    "pins_buffer",
    "slow_decay",
    "errors",
    "dies",
];

/// The mode of this name, where a piece of work is `piece` requests; none if there is no such mode.
pub fn begin(name: &str, piece: u64) -> Option<Mode> {
    Some(match name {
        "clean" => each(clean),
        "leak16" => each(leaks::leak_16_bytes),
        "leak1k" => each(leaks::leak_1_kib),
        "leak1k_every64" => each(leaks::leak_1_kib_every_64),
        "leak_vec" => with(leaks::Pushed::default(), leaks::Pushed::push_16_bytes),
        "leak_map" => with(leaks::Inserted::default(), leaks::Inserted::insert_number),
        "leak_thread_local" => each(leaks::leak_in_thread_local),
        "leak_fd" => each(leaks::leak_descriptor),
        "leak_mmap" => each(native::leak_mapping),
        "leak_threads" => each(native::leak_thread),
        "leak_idle" => {
            std::thread::spawn(leaks::leak_while_idle);
            each(clean)
        }
        "cache_small" => with(bounded::Cache::new(2 * piece), bounded::Cache::remember),
        "cache_large" => with(bounded::Cache::new(14 * piece), bounded::Cache::remember),
        "cache_keyspace" => with(bounded::KeySpace::new(piece), bounded::KeySpace::look_up),
        "pool_highwater" => bounded::pool(),
        "ratchet" => with(bounded::Ratchet::default(), bounded::Ratchet::answer),
        "frag" => with(native::Scattered::new(piece), native::Scattered::scatter),
        "arena_retain" => with(native::Bursts::begin(piece), native::Bursts::work),
        "lazy_init" => {
            let at = 5 * piece;
            with(bounded::Lazy::default(), move |lazy, number| lazy.initialise_at(number, at))
        }
        "sawtooth" => {
            let every = piece * 27 / 10;
            with(bounded::Batch::default(), move |batch, number| batch.collect_every(number, every))
        }
        "pins_buffer" => with(leaks::Pinned::default(), leaks::Pinned::pin_slice_of_buffer),
        "slow_decay" => with(bounded::WarmUp::new(5 * piece), bounded::WarmUp::learn),
        "errors" => {
            Mode { request: Box::new(move |number| number < 3 * piece), connection: Box::new(|| None) }
        }
        "dies" => each(move |number| {
            if number == 4 * piece {
                #[allow(clippy::disallowed_methods, reason = "a server that dies half way asks nobody")]
                std::process::exit(3);
            }
        }),
        _ => return None,
    })
}

/// A mode without a memory of its own.
fn each(work: impl Fn(u64) + Send + Sync + 'static) -> Mode {
    let request = move |number| {
        work(number);
        true
    };
    Mode { request: Box::new(request), connection: Box::new(|| None) }
}

/// A mode that works on something that lives as long as the server.
fn with<S: Send + 'static>(state: S, work: impl Fn(&mut S, u64) + Send + Sync + 'static) -> Mode {
    let state = Mutex::new(state);
    each(move |number| work(&mut state.lock().unwrap_or_else(PoisonError::into_inner), number))
}

/// Some blocks of different sizes, all of them freed.
#[inline(never)]
fn clean(number: u64) {
    let blocks: Vec<Vec<u8>> = (1..8_u64).map(|n| vec![1; (number % 100 * n + 16) as usize]).collect();
    black_box(&blocks);
}
