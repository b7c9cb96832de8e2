//! Frames of scripts on stacks: what a process's log says of them, and where they stand among the native ones.

use crate::memory::{Memory, RegionLog};
use crate::spaces::{FileIndex, Place, Space};
use mallow_scripts::{FrameTable, Scripts, entries, weave};
use mallow_wire::script::{is_script_key, script_frame};
use rustc_hash::FxHashMap;
use std::ops::Range;

/// A frame of a woven stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Woven {
    /// The native frame with this number.
    Native(usize),
    /// The script's frame with this number, among those of all processes.
    Script(u32),
}

/// A process's scripts.
struct Logged {
    log: RegionLog,
    scripts: Scripts,
    /// The code that interprets, once it is known and mapped.
    interpreter: Vec<(FileIndex, Range<u64>)>,
    numbers: FxHashMap<u64, u32>,
}

/// The scripts of all processes.
#[derive(Default)]
pub(crate) struct ScriptLogs {
    regions: FxHashMap<u32, Logged>,
    /// Stacks with a script, and those of them whose calls of the interpreter are not one for one.
    pub(crate) stacks: u64,
    pub(crate) uneven: u64,
}

impl ScriptLogs {
    /// Reads a process's log up to now; nothing if its region cannot be mapped.
    pub(crate) fn read(&mut self, region: u32, memory: &Memory) {
        if !self.regions.contains_key(&region)
            && let Ok(log) = memory.log(region)
        {
            let (scripts, interpreter, numbers) = (Scripts::default(), Vec::new(), FxHashMap::default());
            self.regions.insert(region, Logged { log, scripts, interpreter, numbers });
        }
        if let Some(logged) = self.regions.get_mut(&region) {
            logged.scripts.read(&logged.log);
        }
    }

    /// The region gets another owner. Returns sentences about the old one.
    pub(crate) fn forget(&mut self, region: u32, pid: u32) -> Vec<String> {
        self.regions
            .remove(&region)
            .map_or_else(Vec::new, |logged| logged.scripts.sentences(pid, &logged.log))
    }

    /// Returns sentences about the remaining ones.
    pub(crate) fn sentences(&self, pid_of: impl Fn(u32) -> u32) -> Vec<String> {
        let of = self
            .regions
            .iter()
            .flat_map(|(region, logged)| logged.scripts.sentences(pid_of(*region), &logged.log));
        of.collect()
    }

    /// Merges a native stack and a script's, innermost first. The script's frames are keys.
    pub(crate) fn woven(
        &mut self,
        region: u32,
        native: &[Place],
        script: &[u64],
        space: Option<&Space>,
        table: &mut FrameTable,
    ) -> Vec<Woven> {
        let all = |native: &[Place]| (0..native.len()).map(Woven::Native).collect();
        let Some(logged) = self.regions.get_mut(&region) else { return all(native) };
        if logged.interpreter.is_empty()
            && let Some(space) = space
        {
            logged.interpreter = interpreter_in(space, logged.scripts.interpreters());
        }
        let of_code = |place: &Place| {
            let Place::InFile(file, behind) = place else { return false };
            logged.interpreter.iter().any(|(of, range)| of == file && range.contains(&(behind - 1)))
        };
        let is_interpreter: Vec<bool> = native.iter().map(of_code).collect();
        let keys: Vec<u64> = (0..native.len() as u64).collect();
        let interprets = |key: u64| is_interpreter.get(key as usize).copied().unwrap_or(false);
        let (calls, entered) = entries(&keys, script, interprets);
        self.stacks += 1;
        self.uneven += u64::from(calls != entered);
        // The interpreter has been called and has no frame yet, or none any more.
        let is_between = calls == entered + 1 && interprets(0);
        let woven = weave(&keys, script, |key| interprets(key) && !(is_between && key == 0));
        let shown = woven.into_iter().map(|key| {
            if !is_script_key(key) {
                return Woven::Native(key as usize);
            }
            // Whether it is an entry changes nothing of what it is.
            Woven::Script(
                *logged
                    .numbers
                    .entry(key)
                    .or_insert_with(|| table.number(logged.scripts.frame(key).unwrap_or_default())),
            )
        });
        shown.collect()
    }
}

/// Returns the ranges of the interpreter's code in its file.
fn interpreter_in(space: &Space, ranges: &[[u64; 2]]) -> Vec<(FileIndex, Range<u64>)> {
    let place = |[start, end]: &[u64; 2]| match space.place(*start) {
        Place::InFile(file, behind) if end > start => Some((file, behind - 1..behind - 1 + (end - start))),
        _ => None,
    };
    ranges.iter().filter_map(place).collect()
}

/// The keys in a slot.
pub(crate) fn keys_of(copy: &[u8]) -> Vec<u64> {
    let words = copy.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap_or_default()));
    words.filter(|key| script_frame(*key).is_some()).collect()
}
