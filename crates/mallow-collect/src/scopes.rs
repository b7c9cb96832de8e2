//! What single threads do: sums for those that test themselves while other threads do something else.
//!
//! A thread is counted in the scope that it entered last. A block belongs to the scope in which it was born, whichever thread frees it; a free of
//! another block counts nowhere. The sums are the profile's own: each scope is an [`Aggregator`].

use crate::counts::Counts;
use mallow_profile::{Aggregator, BlockId, StackId, Summary, ThreadIndex, Totals};
use rustc_hash::FxHashMap;

/// The scopes of a process.
#[derive(Debug, Default)]
pub(crate) struct Scopes {
    /// By thread, the scopes that it is in, the last one on top.
    entered: Vec<Vec<u64>>,
    folds: FxHashMap<u64, Aggregator>,
    /// The scope of each live block that was allocated in one, and its id there.
    blocks: FxHashMap<BlockId, (u64, BlockId)>,
    /// What threads that asked by a mark are counted in.
    pub(crate) counts: Counts,
}

impl Scopes {
    /// Returns whether nothing is counted, so that no event need be told.
    pub(crate) fn is_idle(&self) -> bool {
        self.folds.is_empty() && self.counts.is_empty()
    }

    /// A scope begins.
    pub(crate) fn begin(&mut self, scope: u64) {
        self.folds.insert(scope, Aggregator::new());
    }

    /// A thread enters a scope, unless that has ended.
    pub(crate) fn enter(&mut self, scope: u64, thread: ThreadIndex) {
        if !self.folds.contains_key(&scope) {
            return;
        }
        let at = thread.0 as usize;
        if self.entered.len() <= at {
            self.entered.resize_with(at + 1, Vec::new);
        }
        self.entered[at].push(scope);
    }

    /// A thread leaves a scope.
    pub(crate) fn leave(&mut self, scope: u64, thread: ThreadIndex) {
        if let Some(entered) = self.entered.get_mut(thread.0 as usize)
            && let Some(at) = entered.iter().rposition(|other| *other == scope)
        {
            entered.remove(at);
        }
    }

    /// The sums of a scope up to now; none when it has ended.
    pub(crate) fn totals(&self, scope: u64) -> Option<Totals> {
        self.folds.get(&scope).map(Aggregator::totals)
    }

    /// Ends a scope, for every thread.
    pub(crate) fn end(&mut self, scope: u64, end_us: u64) -> Summary {
        self.entered.iter_mut().for_each(|entered| entered.retain(|other| *other != scope));
        self.blocks.retain(|_, (other, _)| *other != scope);
        self.folds.remove(&scope).map(|fold| fold.finish(end_us)).unwrap_or_default()
    }

    /// The scope that a thread is counted in, with its sums.
    fn of(&mut self, thread: ThreadIndex) -> Option<(u64, &mut Aggregator)> {
        let scope = *self.entered.get(thread.0 as usize)?.last()?;
        Some((scope, self.folds.get_mut(&scope)?))
    }

    /// A block was allocated.
    pub(crate) fn born(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) {
        self.counts.born(thread, block, size, false);
        if let Some((scope, fold)) = self.of(thread) {
            let own = fold.alloc(thread, stack, size, time_us);
            self.blocks.insert(block, (scope, own));
        }
    }

    /// A block was freed.
    pub(crate) fn gone(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
        self.counts.gone(thread, block);
        if let Some((scope, own)) = self.blocks.remove(&block)
            && let Some(fold) = self.folds.get_mut(&scope)
        {
            fold.free(thread, own, time_us);
        }
    }

    /// A block took the place of another one, if that was known.
    pub(crate) fn moved(
        &mut self,
        thread: ThreadIndex,
        before: Option<BlockId>,
        (block, stack, size): (BlockId, StackId, u64),
        time_us: u64,
    ) {
        if let Some(before) = before {
            self.counts.gone(thread, before);
        }
        self.counts.born(thread, block, size, true);
        let home = before.and_then(|before| self.blocks.remove(&before));
        let Some((scope, fold)) = self.of(thread) else {
            if let Some((scope, own)) = home
                && let Some(fold) = self.folds.get_mut(&scope)
            {
                fold.free(thread, own, time_us);
            }
            return;
        };
        let own = match home {
            Some((home, own)) if home == scope => fold.realloc(thread, own, stack, size, time_us),
            other => {
                let own = fold.realloc_unmatched(thread, stack, size, time_us);
                if let Some((home, own)) = other
                    && let Some(fold) = self.folds.get_mut(&home)
                {
                    fold.free(thread, own, time_us);
                }
                own
            }
        };
        self.blocks.insert(block, (scope, own));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ThreadIndex = ThreadIndex(0);
    const OTHER: ThreadIndex = ThreadIndex(3);
    const HERE: StackId = StackId(7);

    fn begun() -> Scopes {
        let mut scopes = Scopes::default();
        [1, 2].into_iter().for_each(|scope| scopes.begin(scope));
        scopes
    }

    fn metrics(scopes: &Scopes, scope: u64) -> (u64, u64, u64, u64) {
        let totals = scopes.totals(scope).unwrap_or_default();
        (totals.allocations, totals.bytes, totals.leaked_bytes, totals.temporary)
    }

    #[test]
    fn a_block_belongs_to_the_scope_that_allocated_it() {
        let mut scopes = begun();
        scopes.enter(1, ONE);
        scopes.enter(2, OTHER);
        scopes.born(ONE, BlockId(0), HERE, 10, 1);
        scopes.born(OTHER, BlockId(1), HERE, 100, 2);
        scopes.born(ThreadIndex(1), BlockId(2), HERE, 1000, 3);
        scopes.gone(OTHER, BlockId(0), 4);
        scopes.gone(OTHER, BlockId(2), 5);
        assert_eq!(metrics(&scopes, 1), (1, 10, 0, 0));
        assert_eq!(metrics(&scopes, 2), (1, 100, 100, 0));
    }

    #[test]
    fn an_inner_scope_counts_and_the_outer_one_continues_after_it() {
        let mut scopes = begun();
        scopes.enter(1, ONE);
        scopes.enter(2, ONE);
        scopes.born(ONE, BlockId(0), HERE, 10, 1);
        scopes.leave(2, ONE);
        scopes.born(ONE, BlockId(1), HERE, 20, 2);
        scopes.gone(ONE, BlockId(1), 3);
        assert_eq!((metrics(&scopes, 1), metrics(&scopes, 2)), ((1, 20, 0, 1), (1, 10, 10, 0)));
        assert_eq!(scopes.end(1, 9).sites.len(), 1);
        scopes.born(ONE, BlockId(2), HERE, 20, 10);
        assert_eq!(metrics(&scopes, 1), (0, 0, 0, 0));
    }

    #[test]
    fn a_reallocated_block_belongs_to_the_scope_of_its_realloc() {
        let mut scopes = begun();
        scopes.enter(1, ONE);
        scopes.born(ONE, BlockId(0), HERE, 10, 1);
        scopes.moved(ONE, Some(BlockId(0)), (BlockId(1), HERE, 30), 2);
        scopes.enter(2, OTHER);
        scopes.moved(OTHER, Some(BlockId(1)), (BlockId(2), HERE, 50), 3);
        scopes.moved(ThreadIndex(5), Some(BlockId(2)), (BlockId(3), HERE, 70), 4);
        // The first of its blocks was replaced before its thread allocated anything else.
        assert_eq!(metrics(&scopes, 1), (2, 40, 0, 1));
        assert_eq!(metrics(&scopes, 2), (1, 50, 0, 0));
        assert_eq!(scopes.totals(2).unwrap().reallocations, 1);
    }
}
