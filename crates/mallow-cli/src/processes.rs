//! Whether processes can be watched here.

use crate::args::{LowCommand, LowHeapCommand};
use mallow_launch::started;
use mallow_query::Failure;

/// Refuses a command that watches processes where `/proc` is of other ones: it would take their memory, and write into it.
pub(crate) fn refuse_others(command: &LowCommand) -> Result<(), Failure> {
    if !watches(command) || !started::are_of_others() {
        return Ok(());
    }
    Err(Failure::new(
        "/proc is that of another namespace of processes, where another process has each number, so none can be watched; mount the own one: \
         unshare --pid --fork --mount-proc, or mount -t proc proc /proc.",
    ))
}

fn watches(command: &LowCommand) -> bool {
    match command {
        LowCommand::Record(_) | LowCommand::Stat(_) | LowCommand::Cpu(_) => true,
        LowCommand::Check(_) | LowCommand::Bench(_) => true,
        #[cfg(feature = "soak")]
        LowCommand::Soak(_) => true,
        LowCommand::Heap(low) => match &low.command {
            Some(LowHeapCommand::Capture(_)) => true,
            Some(LowHeapCommand::Explain(low)) => low.pid.is_some(),
            _ => false,
        },
        #[cfg(feature = "open")]
        LowCommand::Open(_) => false,
        LowCommand::Report(_) | LowCommand::Diff(_) | LowCommand::Flamegraph(_) => false,
        LowCommand::Import(_) | LowCommand::Export(_) | LowCommand::Symbolize(_) => false,
        LowCommand::GcLog(_) | LowCommand::Version(_) | LowCommand::Config(_) => false,
        LowCommand::Completions(_) | LowCommand::ManPages(_) => false,
    }
}
