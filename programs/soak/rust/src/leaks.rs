//! What grows with the requests for as long as there are any. The line to be named carries `LEAK`.

use bytes::Bytes;
use std::cell::RefCell;
use std::collections::{HashMap, LinkedList};
use std::fs::File;
use std::hint::black_box;
use std::time::Duration;

/// One block of 16 bytes a request.
#[inline(never)]
pub fn leak_16_bytes(number: u64) {
    std::mem::forget(black_box(Box::new([number, 0]))); // LEAK leak16
}

/// One block of 1,024 bytes a request.
#[inline(never)]
pub fn leak_1_kib(number: u64) {
    std::mem::forget(black_box(Box::new([number; 128]))); // LEAK leak1k
}

/// One block of 1,024 bytes every 64th request: 16 bytes a request.
#[inline(never)]
pub fn leak_1_kib_every_64(number: u64) {
    if number.is_multiple_of(64) {
        std::mem::forget(black_box(Box::new([number; 128]))); // LEAK leak1k_every64
    }
}

/// A vector that nobody empties: 16 bytes a request, allocated by doubling.
#[derive(Default)]
pub struct Pushed(Vec<[u64; 2]>);

impl Pushed {
    /// 16 bytes more.
    #[inline(never)]
    pub fn push_16_bytes(&mut self, number: u64) {
        self.0.push([number, 0]); // LEAK leak_vec
    }
}

/// A map that nobody empties: 17 bytes a bucket, and at most 7 of 8 buckets are used.
#[derive(Default)]
pub struct Inserted(HashMap<u64, u64>);

impl Inserted {
    /// One entry more.
    #[inline(never)]
    pub fn insert_number(&mut self, number: u64) {
        // With something after it, or the call would be a jump, and this function in no stack.
        black_box(self.0.insert(number, number)); // LEAK leak_map
    }
}

thread_local! {
    static SEEN: RefCell<LinkedList<[u64; 2]>> = const { RefCell::new(LinkedList::new()) };
}

/// One node of 32 bytes a request, in a list of the thread.
#[inline(never)]
pub fn leak_in_thread_local(number: u64) {
    SEEN.with_borrow_mut(|seen| seen.push_back([number, 0])); // LEAK leak_thread_local
}

/// One descriptor every 200th request; no memory.
#[inline(never)]
pub fn leak_descriptor(number: u64) {
    if number.is_multiple_of(200) {
        std::mem::forget(File::open("/dev/null")); // LEAK leak_fd
    }
}

/// 1,024 bytes every 10 ms, whether anybody asks for anything or not.
#[inline(never)]
pub fn leak_while_idle() {
    loop {
        std::thread::sleep(Duration::from_millis(10));
        std::mem::forget(black_box(Box::new([1_u64; 128]))); // LEAK leak_idle
    }
}

/// Small slices that keep large buffers alive.
#[derive(Default)]
pub struct Pinned(LinkedList<Bytes>);

impl Pinned {
    /// Keeps 10 bytes of every eighth request's buffer of 8,192. With the buffer's shared head (24 bytes) and the list's
    /// node (48) that is 1,033 bytes a request.
    #[inline(never)]
    pub fn pin_slice_of_buffer(&mut self, number: u64) {
        let buffer = Bytes::from(black_box(vec![1_u8; 8192])); // LEAK pins_buffer
        if number.is_multiple_of(8) {
            self.0.push_back(buffer.slice(100..110));
        }
    }
}
