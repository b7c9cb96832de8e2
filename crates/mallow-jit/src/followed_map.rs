//! A perf map, read while it is written.
//!
//! Before a function runs, its runtime has written its line. So who reads a map and then looks at stacks knows every function on them.

use crate::code_names::is_trusted_file;
use crate::{LiveCode, is_trusted, map_path};
use rustix::fs::{Mode, OFlags};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// The map of a process, and what it told up to now.
#[derive(Debug)]
pub struct FollowedMap {
    map: File,
    read_bytes: u64,
    /// What was read of a line that is not whole yet.
    line: Vec<u8>,
    code: LiveCode,
}

/// No more of a map is read.
const MAP_BYTES_MAX: u64 = 256 << 20;
/// How much is read at once.
const PART_BYTES: usize = 4 << 10;

impl FollowedMap {
    /// That of a process, by the number that it has for itself; none while there is none that can be trusted.
    pub fn of_process(pid: u32) -> Option<FollowedMap> {
        let path = map_path(pid);
        if !is_trusted(&path) {
            return None;
        }
        // Another file may be there by now, such as a FIFO, which would be waited for.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let map = File::from(rustix::fs::open(&path, flags, Mode::empty()).ok()?);
        if !is_trusted_file(&map.metadata().ok()?) {
            return None;
        }
        Some(FollowedMap { map, read_bytes: 0, line: Vec::new(), code: LiveCode::default() })
    }

    /// Reads what is new. Returns whether another function is now where one was.
    pub fn read(&mut self) -> bool {
        let mut is_other = false;
        let mut part = [0; PART_BYTES];
        while self.read_bytes < MAP_BYTES_MAX {
            let Ok(bytes @ 1..) = self.map.read_at(&mut part, self.read_bytes) else { break };
            self.read_bytes += bytes as u64;
            for piece in part[..bytes].split_inclusive(|byte| *byte == b'\n') {
                self.line.extend_from_slice(piece);
                if self.line.pop_if(|last| *last == b'\n').is_some() {
                    is_other |= self.code.tell(&self.line);
                    self.line.clear();
                }
            }
        }
        is_other
    }

    /// What is at which address now.
    pub fn code(&self) -> &LiveCode {
        &self.code
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Anybody may make one at this place, and who opens it waits for somebody that writes.
    #[test]
    fn a_fifo_in_place_of_a_map_is_none_and_is_not_waited_for() {
        let pid = 7 * 4_194_304 + std::process::id();
        let path = map_path(pid);
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        let found = FollowedMap::of_process(pid);
        std::fs::remove_file(&path).unwrap();
        assert!(made.success() && found.is_none());
    }
}
