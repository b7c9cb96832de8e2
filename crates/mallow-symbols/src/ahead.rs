//! Answers found before they are asked for, while a program still runs.
//!
//! A recording meets its addresses one after the other and wants all of their names when it ends. Somebody else may look them up
//! meanwhile, with a symbolizer of its own, and leave the answers here. They are held by what the module's files were then; whoever
//! asks opens the files when the time has come and takes only what was found in the very same ones, so nobody can tell from an
//! answer when it was found. What cannot be known from these files alone, such as loose files of split DWARF or how much of a
//! damaged table was read, is not left here.

use crate::kept::Answers;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, TryLockError};

/// A place for answers that two symbolizers share.
#[derive(Clone, Debug, Default)]
pub struct Ahead(Arc<Mutex<FxHashMap<String, Found>>>);

/// The cached symbols of one module.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) answers: Answers,
    /// Those of the addresses that the folder of kept answers did not know.
    pub(crate) new: Vec<u64>,
}

impl Ahead {
    /// Leaves answers about the module with this identity.
    pub(crate) fn add(&self, identity: String, found: Found) {
        let Ok(mut modules) = self.0.lock() else { return };
        let known = modules.entry(identity).or_default();
        known.answers.frames.extend(found.answers.frames);
        known.answers.problem = known.answers.problem.take().or(found.answers.problem);
        known.new.extend(found.new);
    }

    /// Takes what is cached of a module; nothing while another thread adds to it. That thread may run at the lowest
    /// priority: waiting for it could take longer than resolving.
    pub(crate) fn take(&self, identity: &str) -> Found {
        match self.0.try_lock() {
            Ok(mut modules) => modules.remove(identity).unwrap_or_default(),
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => Found::default(),
        }
    }
}
