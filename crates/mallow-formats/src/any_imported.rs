//! What came of reading a profile, whatever it counts.

use crate::Imported;
use mallow_cpu::CpuProfile;

/// Where a processor's time went, as a file holds it.
#[derive(Clone, Debug)]
pub struct ImportedCpu {
    /// The profile.
    pub profile: CpuProfile,
    /// Sentences about what is missing or doubtful, for people.
    pub warnings: Vec<String>,
    /// Whether the file was closed in order and is undamaged.
    pub complete: bool,
}

/// A profile, whatever it counts.
#[derive(Clone, Debug)]
pub enum AnyImported {
    /// What allocated.
    Heap(Imported),
    /// Where a processor's time went.
    Cpu(ImportedCpu),
}
