//! The libraries that are loaded into the profiled program, and the program that starts timed ones. They are embedded
//! in the binary, so that no path has to be set, and packed, as they are half a megabyte.

use flate2::read::ZlibDecoder;
use std::io::Read;
use std::sync::OnceLock;

macro_rules! embedded {
    ($file:literal) => {
        Embedded {
            packed: include_bytes!(concat!(env!("OUT_DIR"), "/", $file, ".zlib")),
            unpacked: OnceLock::new(),
        }
    };
}

/// Returns `libmallow_preload.so`, as the build script built it.
pub(crate) fn library() -> &'static [u8] {
    static LIBRARY: Embedded = embedded!("libmallow_preload.so");
    LIBRARY.unpacked()
}

/// Returns `mallow-spawner`, which starts and times the commands of a benchmark.
pub(crate) fn spawner() -> &'static [u8] {
    static SPAWNER: Embedded = embedded!("mallow-spawner");
    SPAWNER.unpacked()
}

/// Returns `libmallow_timers.so`, which samples where perf events are refused.
pub(crate) fn timers() -> &'static [u8] {
    static TIMERS: Embedded = embedded!("libmallow_timers.so");
    TIMERS.unpacked()
}

/// A file in the binary, which is unpacked when it is first needed: in a millisecond or two.
struct Embedded {
    packed: &'static [u8],
    unpacked: OnceLock<Vec<u8>>,
}

impl Embedded {
    fn unpacked(&'static self) -> &'static [u8] {
        self.unpacked.get_or_init(|| {
            let mut bytes = Vec::with_capacity(4 * self.packed.len());
            let unpacked = ZlibDecoder::new(self.packed).read_to_end(&mut bytes);
            unpacked.expect("what the build script has packed");
            bytes
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_embedded_file_is_an_elf_file_and_is_unpacked_once() {
        for file in [library, spawner, timers] {
            assert!(file().starts_with(b"\x7fELF") && file().len() > 1_000);
            assert!(std::ptr::eq(file(), file()));
        }
    }
}
