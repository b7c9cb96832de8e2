//! Remembers which states of a runtime's may be read.

use super::code_log;
use crate::bounds::{at, at_mut};

const TRUSTED: usize = 256;

/// The runtime's states that were checked by checked reads, and are live while nothing was freed since.
#[repr(C)]
#[derive(Debug)]
pub struct Trusted {
    /// How often a state had been freed when they were checked.
    deaths: u64,
    /// The value that the thread's reader shares; 0 while it is unknown.
    owner: usize,
    states: [usize; TRUSTED],
}

impl Trusted {
    /// Forgets them all, and the owner.
    pub(super) fn forget(&mut self) {
        (self.owner, self.states) = (0, [0; TRUSTED]);
    }

    /// Returns whether a state may be read; `look` checks a new one, and may store the owner.
    #[inline(always)]
    pub fn holds(&mut self, state: usize, look: impl FnOnce(usize, &mut usize) -> bool) -> bool {
        let place = (state >> 4).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 48 & (TRUSTED - 1);
        let is_known = self.deaths == code_log::state_deaths() && *at(&self.states, place) == state;
        is_known || self.learn(state, place, look)
    }

    #[cold]
    #[inline(never)]
    fn learn(&mut self, state: usize, place: usize, look: impl FnOnce(usize, &mut usize) -> bool) -> bool {
        let deaths = code_log::state_deaths();
        if self.deaths != deaths {
            (self.deaths, self.owner, self.states) = (deaths, 0, [0; TRUSTED]);
        }
        let is_live = look(state, &mut self.owner);
        *at_mut(&mut self.states, place) = if is_live { state } else { 0 };
        is_live
    }
}
