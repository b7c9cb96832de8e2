//! Code that processes make while they are sampled: which function is at an address now.

use crate::spaces::Place;
use crate::stack_table::CodePlace;
use mallow_base::Frame;
use mallow_jit::FollowedMap;
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The maps of processes, by their index, and the functions on stacks.
#[derive(Debug, Default)]
pub(crate) struct MadeCode {
    maps: FxHashMap<u32, Map>,
    frames: FxHashMap<CodePlace, Arc<Frame>>,
}

/// A process's map, if it was found, and how often it was looked for.
#[derive(Debug, Default)]
struct Map {
    found: Option<FollowedMap>,
    looks: u32,
}

/// A map that is not there is looked for again after so many samples.
const LOOK_AGAIN: u32 = 64;

impl MadeCode {
    /// Reads what is new in the map of a process, if a stack needs it.
    pub(crate) fn follow(&mut self, process: u32, pid: u32, frames: &[Place]) {
        if !frames.iter().any(|frame| matches!(frame, Place::Anonymous(_))) {
            return;
        }
        let map = self.maps.entry(process).or_default();
        if map.found.is_none() && map.looks.is_multiple_of(LOOK_AGAIN) {
            map.found = FollowedMap::of_process(pid);
        }
        map.looks = map.looks.wrapping_add(1);
        if let Some(map) = &mut map.found {
            map.read();
        }
    }

    /// A frame's place in a process as it is now.
    pub(crate) fn place(&mut self, place: Place, process: u32) -> CodePlace {
        let Place::Anonymous(behind) = place else { return place.of(process) };
        let map = self.maps.get(&process).and_then(|map| map.found.as_ref());
        let Some((frame, version)) = map.and_then(|map| map.code().at(behind.wrapping_sub(1))) else {
            return place.of(process);
        };
        let place = CodePlace::Made(process, behind, version);
        self.frames.entry(place).or_insert_with(|| Arc::clone(frame));
        place
    }

    /// The function at a place.
    pub(crate) fn frame(&self, place: CodePlace) -> Option<&Frame> {
        self.frames.get(&place).map(|frame| &**frame)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mallow_jit::map_path;

    #[test]
    fn a_place_is_another_one_when_another_function_is_there() {
        let pid = 6 * 4_194_304 + std::process::id();
        let (path, behind) = (map_path(pid), Place::Anonymous(0x1009));
        let mut made = MadeCode::default();
        let at = |made: &mut MadeCode, map: &str| {
            std::fs::write(&path, map).unwrap();
            made.follow(3, pid, &[behind]);
            made.place(behind, 3)
        };
        let first = at(&mut made, "1000 10 f\n");
        let same = at(&mut made, "1000 10 f\n2000 10 other\n");
        let second = at(&mut made, "1000 10 f\n2000 10 other\n1000 10 g\n");
        std::fs::remove_file(&path).unwrap();
        assert_eq!((first, second), (same, CodePlace::Made(3, 0x1009, 3)));
        let name = |place| made.frame(place).map(|frame| frame.function.as_str());
        assert_eq!([first, second].map(name), [Some("f"), Some("g")]);
        assert_eq!(made.place(behind, 4), CodePlace::Anonymous(4, 0x1009), "another process");
    }
}
