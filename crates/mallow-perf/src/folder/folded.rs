//! Stacks of native frames.

use super::Folder;
use crate::spaces::Place;
use crate::stack_table::CodePlace;
use mallow_stacks::StackId;

impl Folder {
    /// A stack of the program's frames and the kernel's, both innermost first.
    pub(super) fn folded(&mut self, process: u32, frames: &[Place], kernel: &[u64]) -> Option<StackId> {
        self.follow_made_code(process, frames);
        let user = frames.iter().rev().map(|place| self.made.place(*place, process));
        let kernel = kernel.iter().rev().map(|address| CodePlace::Kernel(*address));
        self.stacks.stack(user.chain(kernel))
    }

    /// Reads what is new of the code that a process makes, if these frames are in it. A jitdump has its names in one file at the end.
    pub(super) fn follow_made_code(&mut self, process: u32, frames: &[Place]) {
        let known = self.processes.get(process as usize);
        if let Some(known) = known.filter(|_| self.origin.is_now && !self.dumps.contains_key(&process)) {
            self.made.follow(process, known.pid, frames);
        }
    }
}
