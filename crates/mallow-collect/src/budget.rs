//! How much memory a collector may hold for a program: in proportion to what the program has itself.
//!
//! What is kept of a process (live blocks, stacks, modules, threads, names) never takes more than twice the memory that the process needs to have
//! so much of it, however small its blocks are. A program that only claims to have it, by writing to the shared memory, needs nothing. So what is held
//! beyond that has a bound over all processes; when it is passed, the process with the most is taken for damaged, and left.

use crate::peer::Peer;
use crate::process::TracedProcess;
use rustc_hash::FxHashMap;

/// How much may be held beyond twice the memory of the processes.
const EXCESS_BYTES_MAX: u64 = 256 << 20;
/// Programs that one process may become.
pub(crate) const IMAGES_MAX: u32 = 4096;
/// Processes that are remembered for having been left.
const SHUNNED_MAX: usize = 1024;

/// How much memory is held, and which processes were dropped.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    /// Held for processes that have ended.
    ended_excess_bytes: u64,
    /// By process: what is kept of the programs that it was before.
    before: FxHashMap<u32, Before>,
    shunned: Vec<Peer>,
}

/// The earlier programs of a process that has called `exec`.
#[derive(Clone, Copy, Debug, Default)]
struct Before {
    images: u32,
    kept_bytes: u64,
    largest_bytes: u64,
}

impl Budget {
    /// Takes the process with the most for damaged, if too much is held.
    pub(crate) fn judge(&self, processes: &mut [TracedProcess]) {
        let excess = |process: &TracedProcess| self.excess_bytes(process, process.held_bytes());
        let all: u64 = processes.iter().map(excess).sum();
        if all.saturating_add(self.ended_excess_bytes) <= EXCESS_BYTES_MAX {
            return;
        }
        if let Some(worst) = processes.iter_mut().max_by_key(|process| excess(process)) {
            worst.abandon("it says to have more blocks, stacks or threads than its memory has room for");
        }
    }

    fn excess_bytes(&self, process: &TracedProcess, held_bytes: u64) -> u64 {
        let before = self.before.get(&process.pid).copied().unwrap_or_default();
        let largest_bytes = before.largest_bytes.max(process.largest_bytes());
        (before.kept_bytes + held_bytes).saturating_sub(2 * largest_bytes)
    }

    /// A process becomes another program.
    pub(crate) fn note_replaced(&mut self, process: &mut TracedProcess) {
        let before = self.before.entry(process.pid).or_default();
        before.images += 1;
        before.kept_bytes += process.kept_bytes();
        before.largest_bytes = before.largest_bytes.max(process.largest_bytes());
        if before.images > IMAGES_MAX {
            process.abandon("it became another program more than 4,096 times");
        }
    }

    /// Called when a process has ended.
    pub(crate) fn note_ended(&mut self, process: &TracedProcess) {
        self.ended_excess_bytes += self.excess_bytes(process, process.kept_bytes());
        self.before.remove(&process.pid);
        self.shunned.retain(|peer| !peer.has_ended());
        if let Some(peer) = process
            .beyond()
            .and_then(|_| process.peer().try_clone())
            .filter(|_| self.shunned.len() < SHUNNED_MAX)
        {
            self.shunned.push(peer);
        }
    }

    /// Returns whether a process was dropped, and must not register again.
    pub(crate) fn is_shunned(&self, peer: &Peer) -> bool {
        self.shunned.iter().any(|shunned| shunned.pid == peer.pid && !shunned.has_ended())
    }
}

#[cfg(test)]
#[path = "budget_tests.rs"]
mod tests;
