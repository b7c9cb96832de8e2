//! The result of reading a profile of any kind.

use crate::Imported;
use mallow_cpu::CpuProfile;

/// A CPU profile, as read from a file.
#[derive(Clone, Debug)]
pub struct ImportedCpu {
    /// The profile.
    pub profile: CpuProfile,
    /// Warnings about what is missing or doubtful, as sentences.
    pub warnings: Vec<String>,
    /// Whether the file is complete and undamaged.
    pub complete: bool,
}

/// A profile of any kind.
#[derive(Clone, Debug)]
pub enum AnyImported {
    /// A heap profile.
    Heap(Imported),
    /// A CPU profile.
    Cpu(ImportedCpu),
}
