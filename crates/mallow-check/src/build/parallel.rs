//! As many at once as there are processors.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// Runs `job` for each item, at most `jobs` in parallel, and returns the results in the order of the items.
pub(super) fn map<Item: Sync, Made: Send>(
    items: &[Item],
    jobs: usize,
    job: impl Fn(&Item) -> Made + Sync,
) -> Vec<Made> {
    let next = AtomicUsize::new(0);
    let made = Mutex::new(Vec::with_capacity(items.len()));
    let work = || {
        while let Some((index, item)) = Some(next.fetch_add(1, Ordering::Relaxed))
            .and_then(|index| items.get(index).map(|item| (index, item)))
        {
            let result = job(item);
            if let Ok(mut made) = made.lock() {
                made.push((index, result));
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..jobs.min(items.len()) {
            scope.spawn(work);
        }
        work();
    });
    let mut made = made.into_inner().unwrap_or_default();
    made.sort_unstable_by_key(|(index, _)| *index);
    made.into_iter().map(|(_, result)| result).collect()
}
