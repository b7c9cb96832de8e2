//! Who takes the events of one process: an aggregator, or a pass of analyses.

use crate::analysis::Pass;
use crate::{Aggregator, BlockId, StackId, ThreadIndex};

/// Receives the events of one process in their order, and numbers blocks as an [`Aggregator`] does: the same events
/// yield the same ids.
pub trait EventSink {
    /// A successful allocating call.
    fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId;

    /// A block is freed, by `free` or by `realloc` to no size.
    fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64);

    /// A successful `realloc` of a live block to a size above 0.
    fn realloc(
        &mut self,
        thread: ThreadIndex,
        block: BlockId,
        stack: StackId,
        size: u64,
        time_us: u64,
    ) -> BlockId;

    /// A successful `realloc` of a block whose allocation was not seen.
    fn realloc_unmatched(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId;

    /// A free of a block whose allocation was not seen.
    fn free_unmatched(&mut self, thread: ThreadIndex, time_us: u64);

    /// An allocating call that failed.
    fn failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64);

    /// Returns whether a block is live. Ids from a damaged file need not be.
    fn is_live(&self, block: BlockId) -> bool;
}

/// The methods of a type that has them, or leads to one that has them, under the same names.
macro_rules! event_sink {
    ($taker:ty => $owner:ty $(, $sink:ident)?) => {
        impl$(<$sink: EventSink>)? EventSink for $taker {
            #[inline]
            fn alloc(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) -> BlockId {
                <$owner>::alloc(self, thread, stack, size, time_us)
            }

            #[inline]
            fn free(&mut self, thread: ThreadIndex, block: BlockId, time_us: u64) {
                <$owner>::free(self, thread, block, time_us);
            }

            fn realloc(
                &mut self,
                thread: ThreadIndex,
                block: BlockId,
                stack: StackId,
                size: u64,
                time_us: u64,
            ) -> BlockId {
                <$owner>::realloc(self, thread, block, stack, size, time_us)
            }

            fn realloc_unmatched(
                &mut self,
                thread: ThreadIndex,
                stack: StackId,
                size: u64,
                time_us: u64,
            ) -> BlockId {
                <$owner>::realloc_unmatched(self, thread, stack, size, time_us)
            }

            fn free_unmatched(&mut self, thread: ThreadIndex, time_us: u64) {
                <$owner>::free_unmatched(self, thread, time_us);
            }

            fn failed(&mut self, thread: ThreadIndex, stack: StackId, size: u64, time_us: u64) {
                <$owner>::failed(self, thread, stack, size, time_us);
            }

            #[inline]
            fn is_live(&self, block: BlockId) -> bool {
                <$owner>::is_live(self, block)
            }
        }
    };
}

event_sink!(Aggregator => Aggregator);
event_sink!(Pass => Pass);
event_sink!(&mut S => S, S);
