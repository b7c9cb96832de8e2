//! Answers found before they are asked for, while a program still runs.
//!
//! A recording meets its addresses one after the other and wants all of their names when it ends. Somebody else may look them up
//! meanwhile, with a symbolizer of its own, and leave the answers here. They are held with the files that were tried for them; whoever
//! asks looks when the time has come whether these are the very same ones, so nobody can tell from an
//! answer when it was found. What cannot be known from these files alone, such as loose files of split DWARF or how much of a
//! damaged table was read, is not left here.

use crate::ModuleKey;
use crate::packed::Answers;
use rustc_hash::FxHashMap;
use std::sync::{Arc, Mutex, TryLockError};

/// A place for answers that two symbolizers share.
#[derive(Clone, Debug, Default)]
pub struct Ahead(Arc<Mutex<FxHashMap<ModuleKey, Found>>>);

/// The cached symbols of one module.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) answers: Answers,
    /// Those of the addresses that the folder of kept answers did not know.
    pub(crate) new: Vec<u64>,
}

impl Ahead {
    /// Leaves answers about a module.
    pub(crate) fn add(&self, module: &ModuleKey, found: Found) {
        let Ok(mut modules) = self.0.lock() else { return };
        let known = modules.entry(module.clone()).or_default();
        // Other files were there when they were found.
        if known.answers.tried != found.answers.tried {
            *known = Found::default();
        }
        known.answers.extend(found.answers);
        known.new.extend(found.new);
    }

    /// Takes what is cached of a module; nothing while another thread adds to it. That thread may run at the lowest
    /// priority: waiting for it could take longer than resolving.
    pub(crate) fn take(&self, module: &ModuleKey) -> Found {
        match self.0.try_lock() {
            Ok(mut modules) => {
                modules.remove(module).filter(|found| found.answers.are_current()).unwrap_or_default()
            }
            Err(TryLockError::WouldBlock | TryLockError::Poisoned(_)) => Found::default(),
        }
    }
}
