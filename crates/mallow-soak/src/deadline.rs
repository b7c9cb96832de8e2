//! When a soak has to end: it was cancelled, or its time is up.

use mallow_launch::Interrupts;
use std::time::Instant;

/// Checked wherever a phase might continue.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline<'a> {
    pub(crate) interrupts: &'a Interrupts,
    /// No work starts after this.
    pub(crate) end: Option<Instant>,
}

impl Deadline<'_> {
    /// Returns whether the soak was cancelled.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.interrupts.heard() > 0
    }

    /// Returns whether there is no time for more work.
    pub(crate) fn is_over(&self) -> bool {
        self.is_cancelled() || self.end.is_some_and(|end| Instant::now() >= end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn an_end_is_over_when_its_time_has_come() {
        let interrupts = Interrupts::ignored();
        let at = |end: Option<Instant>| Deadline { interrupts: &interrupts, end }.is_over();
        let now = Instant::now();
        assert_eq!([at(None), at(Some(now)), at(Some(now + Duration::from_secs(60)))], [false, true, false]);
    }
}
