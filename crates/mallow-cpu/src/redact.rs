//! A profile to give away: what programs did, and nothing of who ran them, where, and with which arguments.

use crate::CpuProfile;
use mallow_stacks::base_name;

impl CpuProfile {
    /// Leaves out arguments of the command line and folders of all paths.
    pub fn redact(&mut self) {
        self.stacks.redact();
        self.recording.command.truncate(1);
        self.recording.command.iter_mut().for_each(|program| *program = base_name(program));
        self.processes.iter_mut().for_each(|process| process.program = base_name(&process.program));
    }
}
