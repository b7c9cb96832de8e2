//! How lists of many megabytes grow.

use super::MemoryAdvice;

/// Moves a list into twice the memory, of which the new one is advised before any of it is touched.
pub(super) fn double<T>(list: &mut Vec<T>, capacity_min: usize, advise: Option<MemoryAdvice>) {
    let mut doubled: Vec<T> = Vec::with_capacity((list.len() * 2).max(capacity_min));
    if let Some(advise) = advise {
        let memory = doubled.spare_capacity_mut();
        advise(memory.as_mut_ptr().cast(), size_of_val(memory));
    }
    doubled.append(list);
    *list = doubled;
}
