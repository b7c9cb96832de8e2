//! The libraries that are loaded into the profiled program, and the program that starts timed ones. They are embedded
//! in the binary, so that no path has to be set, and packed, as they are half a megabyte.

use mallow_launch::{Content, Packed};

/// What the build script has packed.
macro_rules! embedded {
    ($file:literal) => {
        Content::Packed(include!(concat!(env!("OUT_DIR"), "/", $file, ".rs")))
    };
}

/// `libmallow_preload.so`, as the build script built it.
pub(crate) const LIBRARY: Content<'static> = embedded!("libmallow_preload.so");

/// `mallow-spawner`, which starts and times the commands of a benchmark.
pub(crate) const SPAWNER: Content<'static> = embedded!("mallow-spawner");

/// `libmallow_timers.so`, which samples where perf events are refused.
pub(crate) const TIMERS: Content<'static> = embedded!("libmallow_timers.so");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_embedded_file_is_an_elf_file_with_its_length_and_checksum() {
        for content in [LIBRARY, SPAWNER, TIMERS] {
            let Content::Packed(packed) = content else { unreachable!("they are packed") };
            let unpacked = content.unpacked().unwrap();
            assert!(unpacked.starts_with(b"\x7fELF") && packed.bytes > 1_000);
            assert_eq!((unpacked.len() as u64, crc32fast::hash(&unpacked)), (packed.bytes, packed.checksum));
        }
    }
}
