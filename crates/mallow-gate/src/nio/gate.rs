//! The gate's own assertions, all of them rather than up to the first that fails.

use super::{LogTest, Thresholds};

/// A total may be less than this below its limit.
pub const WINDOW: u64 = 1000;

/// Left-over blocks may be less than this, in both directions: the framework counts frees of blocks that other code
/// allocated.
const REMAINING: i64 = 5;

/// Leaked descriptors must be fewer than this.
const LEAKED: i64 = 1;

/// Why a test fails.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// The test's name.
    pub test: String,
    /// The reason, a sentence.
    pub sentence: String,
}

/// Compares a log with limits. A test without a total was not measured, which fails too; other missing values are not
/// asserted.
pub fn check(tests: &[LogTest], limits: &Thresholds) -> Vec<Failure> {
    tests
        .iter()
        .flat_map(|test| {
            let sentences = [total(test, limits), remaining(test), leaked(test)];
            sentences.into_iter().flatten().map(|sentence| Failure { test: test.name.clone(), sentence })
        })
        .collect()
}

fn total(test: &LogTest, limits: &Thresholds) -> Option<String> {
    let Some(total) = test.total_allocations else {
        return Some("the log has no total_allocations for it.".to_owned());
    };
    let Some(limit) = limits.get(&test.name) else {
        return Some(format!("there is no limit for it; it made {total} allocations."));
    };
    let (total, limit) = (i128::from(total), i128::from(limit));
    if total > limit {
        Some(format!("{total} allocations are more than its limit, {limit}."))
    } else if total <= limit - i128::from(WINDOW) {
        Some(format!("{total} allocations are {WINDOW} or more below its limit, {limit}: lower it."))
    } else {
        None
    }
}

fn remaining(test: &LogTest) -> Option<String> {
    let remaining = test.remaining_allocations?;
    let is_fine = remaining > -REMAINING && remaining < REMAINING;
    (!is_fine).then(|| {
        format!("{remaining} allocations remain; more than -{REMAINING} and less than {REMAINING} are fine.")
    })
}

fn leaked(test: &LogTest) -> Option<String> {
    let leaked = test.leaked_fds?;
    (leaked >= LEAKED).then(|| format!("{leaked} descriptors leaked."))
}

#[cfg(test)]
#[path = "gate_tests.rs"]
mod tests;
