//! A perf map, read while it is written.
//!
//! Before a function runs, its runtime has written its line. So who reads a map and then looks at stacks knows every function on them.

use crate::{LiveCode, is_trusted, map_path};
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
        let map = File::open(&path).ok().filter(|_| is_trusted(&path))?;
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
