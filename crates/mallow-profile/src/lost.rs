//! How many events are missing.

/// Events that were not recorded. A number is exact: who knows of some and may have missed others does not know how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventsLost {
    /// So many.
    Exactly(u64),
    /// Some, or none.
    Unknown,
}

impl Default for EventsLost {
    fn default() -> Self {
        EventsLost::Exactly(0)
    }
}

impl EventsLost {
    /// Returns whether none is missing.
    pub fn is_none(self) -> bool {
        self == EventsLost::Exactly(0)
    }

    /// Those of both.
    #[must_use]
    pub fn and(self, other: EventsLost) -> EventsLost {
        match (self, other) {
            (EventsLost::Exactly(one), EventsLost::Exactly(two)) => {
                EventsLost::Exactly(one.saturating_add(two))
            }
            _ => EventsLost::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::EventsLost::{Exactly, Unknown};

    #[test]
    fn a_sum_with_something_unknown_is_unknown() {
        assert_eq!(Exactly(2).and(Exactly(3)), Exactly(5));
        assert_eq!(Exactly(2).and(Unknown), Unknown);
        assert_eq!(Unknown.and(Exactly(0)), Unknown);
        assert!(Exactly(0).is_none() && !Unknown.is_none() && !Exactly(1).is_none());
    }
}
