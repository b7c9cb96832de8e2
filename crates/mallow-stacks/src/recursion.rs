//! Recursion on a stack, of one function or of several that call each other: told instead of repeated.
//!
//! Between the first and the last call of a function that calls itself, however far around, each function is kept once, in the order in
//! which they are called first; and so is the last call, since it is the one that goes on. So a stack of any depth becomes one of few calls, the
//! innermost call stays the innermost, and every function that is called is there. Calls that do not recur stay as they are.

/// A call that is kept, and how many calls it represents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FoldedCall {
    /// Its index in the stack; for several calls that of the first, or that of the last where the stack continues
    /// from there.
    pub at: usize,
    /// How many calls it represents, itself included.
    pub times: u32,
}

/// Folds stacks one after another.
#[derive(Debug, Default)]
pub struct Recursion {
    /// By function: the stack on which it was seen last, its last place there, and its place among the kept calls.
    seen: Vec<LastCall>,
    stack: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct LastCall {
    stack: u32,
    last: usize,
    kept: usize,
}

impl Recursion {
    /// The id of functions without a name, which never count as recursion.
    pub const NOBODY: u32 = u32::MAX;

    /// Merges recursion in a stack, outermost call first: functions as small numbers, each with how many times in a
    /// row it is called.
    pub fn fold(&mut self, calls: &[(u32, u32)]) -> Vec<FoldedCall> {
        self.stack += 1;
        let mut recurs = false;
        for (at, (function, _)) in calls.iter().enumerate() {
            recurs |= self.meet(*function, at);
        }
        if !recurs {
            return calls
                .iter()
                .enumerate()
                .map(|(at, (_, times))| FoldedCall { at, times: *times })
                .collect();
        }
        let mut kept = Vec::new();
        let mut begin = 0;
        while begin < calls.len() {
            // A stretch ends where nothing in it is called again.
            let mut end = begin;
            let mut at = begin;
            while at <= end {
                end = end.max(self.last_of(calls[at].0).unwrap_or(at));
                at += 1;
            }
            self.fold_stretch(calls, begin, end, &mut kept);
            begin = end + 1;
        }
        kept
    }

    /// Folds what lies from one place to another, both included.
    fn fold_stretch(&mut self, calls: &[(u32, u32)], begin: usize, end: usize, kept: &mut Vec<FoldedCall>) {
        for (at, (function, times)) in calls.iter().enumerate().take(end + 1).skip(begin) {
            match self.seen.get_mut(*function as usize) {
                Some(seen) if seen.kept != usize::MAX => {
                    kept[seen.kept].times = kept[seen.kept].times.saturating_add(*times);
                    continue;
                }
                Some(seen) => seen.kept = kept.len(),
                None => {}
            }
            kept.push(FoldedCall { at, times: *times });
        }
        let (function, times) = calls[end];
        let Some(LastCall { kept: last, .. }) = self.seen.get(function as usize).copied() else { return };
        if last + 1 < kept.len() {
            kept[last].times = kept[last].times.saturating_sub(times).max(1);
            kept.push(FoldedCall { at: end, times });
        } else {
            kept[last].at = end;
        }
    }

    /// Returns the index of the last call of a function on this stack.
    fn last_of(&self, function: u32) -> Option<usize> {
        self.seen.get(function as usize).map(|seen| seen.last)
    }

    /// Notes a call of a function; true if it was on this stack before.
    fn meet(&mut self, function: u32, at: usize) -> bool {
        if function == Recursion::NOBODY {
            return false;
        }
        let index = function as usize;
        if index >= self.seen.len() {
            self.seen.resize(index + 1, LastCall::default());
        }
        let seen = &mut self.seen[index];
        let is_again = seen.stack == self.stack;
        if !is_again {
            *seen = LastCall { stack: self.stack, last: at, kept: usize::MAX };
        }
        seen.last = at;
        is_again
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// `a2 b c` for three calls that are kept, the first of which represents two.
    fn folded(stack: &str) -> String {
        let functions: Vec<(u32, u32)> = stack.bytes().map(|name| (u32::from(name), 1)).collect();
        let mut recursion = Recursion::default();
        // What was seen on another stack does not matter.
        recursion.fold(&[(97, 1), (97, 1), (98, 1)]);
        let kept = recursion.fold(&functions);
        let texts = kept.iter().map(|call| {
            let times = if call.times > 1 { call.times.to_string() } else { String::new() };
            format!("{}{times}", &stack[call.at..=call.at])
        });
        texts.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn functions_that_call_each_other_are_kept_once() {
        for (stack, kept) in [
            ("", ""),
            ("mabc", "m a b c"),
            ("mwwwwl", "m w4 l"),
            ("mababl", "m a2 b2 l"),
            ("mabababal", "m a3 b3 a l"),
            // A parser's functions, in whatever order they call each other.
            ("mvovavl", "m v2 o a v l"),
            ("mvavovl", "m v2 a o v l"),
            ("aabbxcdc", "a2 b2 x c d c"),
            // A repeated call must not hide the calls in between.
            ("maxyzal", "m a x y z a l"),
        ] {
            assert_eq!(folded(stack), kept, "{stack}");
        }
    }

    #[test]
    fn nobody_knows_whether_functions_without_a_name_recur() {
        let nobody = Recursion::NOBODY;
        let calls = [(1, 1), (nobody, 1), (2, 1), (nobody, 1), (2, 3), (nobody, 1)];
        let kept = Recursion::default().fold(&calls);
        let kept: Vec<(usize, u32)> = kept.iter().map(|call| (call.at, call.times)).collect();
        assert_eq!(kept, [(0, 1), (1, 1), (2, 1), (3, 1), (4, 3), (5, 1)]);
    }

    #[test]
    fn depth_does_not_matter() {
        let deep: Vec<(u32, u32)> = (0..100_000).map(|at| (at % 3, 1)).collect();
        let kept = Recursion::default().fold(&deep);
        let times: Vec<u32> = kept.iter().map(|call| call.times).collect();
        assert_eq!(times, [33_333, 33_333, 33_333, 1]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost(calls in proptest::collection::vec((0..6_u32, 1..4_u32), 0..40)) {
            let kept = Recursion::default().fold(&calls);
            let all = calls.iter().map(|call| call.1).sum::<u32>();
            prop_assert_eq!(kept.iter().map(|call| call.times).sum::<u32>(), all);
            let stack: Vec<u32> = calls.iter().map(|call| call.0).collect();
            prop_assert_eq!(kept.last().map(|call| call.at + 1), (!stack.is_empty()).then_some(stack.len()));
            prop_assert!(kept.is_sorted_by_key(|call| call.at));
            let functions = |calls: Vec<u32>| calls.into_iter().collect::<std::collections::BTreeSet<u32>>();
            prop_assert_eq!(functions(kept.iter().map(|call| stack[call.at]).collect()), functions(stack.clone()));
            // Each function is there at most twice, once as the last of a stretch.
            for function in 0..6 {
                prop_assert!(kept.iter().filter(|call| stack[call.at] == function).count() <= 2);
            }
        }
    }
}
