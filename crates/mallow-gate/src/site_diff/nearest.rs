//! Which of two calls in one function is the old one, when a second one was put beside it: that whose lines are nearest to the
//! baseline's. A diff by functions takes any of them, and the other one would be called new.

use crate::measurement::Site;
use mallow_base::Frame;
use mallow_profile::DiffEntry;
use std::collections::HashMap;

/// Reassigns sites that were matched by their functions alone: each gets the nearest of the new sites with the same
/// functions.
pub(super) fn by_lines(entries: &mut [DiffEntry], before: &[Site], now: &[Vec<Frame>]) {
    let mut new: HashMap<Vec<&str>, Vec<usize>> = HashMap::new();
    for (at, entry) in entries.iter().enumerate() {
        if let ([], [after]) = (&entry.before[..], &entry.after[..]) {
            new.entry(functions(&now[*after])).or_default().push(at);
        }
    }
    for at in 0..entries.len() {
        let ([old], [after]) = (&entries[at].before[..], &entries[at].after[..]) else { continue };
        let old = &before[*old].frames;
        let distance = |after: usize| distance(old, &now[after]);
        let others = new.get(&functions(&now[*after])).into_iter().flatten();
        let nearest = others.min_by_key(|other| distance(entries[**other].after[0]));
        if let Some(other) = nearest.filter(|other| distance(entries[**other].after[0]) < distance(*after)) {
            let nearer = std::mem::take(&mut entries[*other].after);
            entries[*other].after = std::mem::replace(&mut entries[at].after, nearer);
        }
    }
}

fn functions(stack: &[Frame]) -> Vec<&str> {
    stack.iter().map(|frame| &*frame.function).collect()
}

/// Returns how many lines two stacks of the same functions differ by; a large number if the functions differ.
fn distance(old: &[Frame], now: &[Frame]) -> u64 {
    if old.len() != now.len() {
        return u64::MAX;
    }
    let lines = old.iter().zip(now).map(|(old, now)| old.line.unwrap_or(0).abs_diff(now.line.unwrap_or(0)));
    lines.map(u64::from).sum()
}
