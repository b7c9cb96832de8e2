//! Writes into a Vec that has room and reads from it; two of the reads copy.
//!
//! 1 storage + 1000 operations x (1 Vec of bytes + 1 String) = 2001.
//!
//! expect: allocations=2001 remaining=0 descriptors=0 ops=1000
#![allow(unexpected_cfgs)]

use mallow_markers::{keep, measure, ops};

const OPS: usize = 1000;

struct Buffer {
    bytes: Vec<u8>,
    reader: usize,
}

impl Buffer {
    fn clear(&mut self) {
        self.bytes.clear();
        self.reader = 0;
    }

    fn put(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    fn take(&mut self, length: usize) -> &[u8] {
        self.reader += length;
        &self.bytes[self.reader - length..self.reader]
    }

    fn number(&mut self) -> u64 {
        self.take(8).iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
    }

    fn copy(&mut self, length: usize) -> Vec<u8> {
        self.take(length).to_vec()
    }

    fn text(&mut self, length: usize) -> String {
        std::str::from_utf8(self.take(length)).unwrap().to_owned()
    }
}

fn run() {
    let mut buffer = Buffer { bytes: Vec::with_capacity(256), reader: 0 };
    #[cfg(seed_fd)]
    std::mem::forget(std::fs::File::open("/dev/null")); // SEED_FD
    for operation in 0..OPS {
        buffer.clear();
        buffer.put(&(operation as u64).to_be_bytes());
        buffer.put(&7u64.to_be_bytes());
        buffer.put(b"0123456789abcdef");
        buffer.put(b"how are you");
        assert!(buffer.number() == operation as u64 && buffer.number() == 7);
        assert!(keep(buffer.copy(16)).len() == 16);
        assert!(keep(buffer.text(11)) == "how are you");
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
    measure("buffer_rw", run);
}
