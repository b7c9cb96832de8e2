//! When a process registered, or noted that it starts a program, and which of two such moments is the later one.
//!
//! Both are by the monotonic clock of the process that tells. One in another time namespace has another clock; what is known of the two then is which process
//! registered first, and that it did so before it noted anything.

use mallow_wire::shared::Header;

/// A moment in the life of a recorded process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Moment {
    /// The time namespace.
    clock: u64,
    time_ns: u64,
    /// Registrations are even, notes of a process come right behind its own.
    order: u64,
}

impl Moment {
    /// The registration of a process, which was that number of all.
    pub(crate) fn of_registration(header: &Header, index: u32) -> Moment {
        Moment { clock: header.clock, time_ns: header.started_ns, order: u64::from(index) * 2 }
    }

    /// A note of that process.
    pub(crate) fn of_note(header: &Header, index: u32, time_ns: u64) -> Moment {
        Moment { clock: header.clock, time_ns, order: u64::from(index) * 2 + 1 }
    }

    /// Returns whether this is not before another moment.
    pub(crate) fn follows(self, other: Moment) -> bool {
        match self.clock == other.clock {
            true => self.time_ns >= other.time_ns,
            false => self.order > other.order,
        }
    }

    #[cfg(test)]
    pub(crate) fn at(clock: u64, time_ns: u64, order: u64) -> Moment {
        Moment { clock, time_ns, order }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_clock_tells_and_two_do_not() {
        let (registered, noted) = (Moment::at(7, 100, 2), Moment::at(7, 200, 3));
        assert!(noted.follows(registered) && !registered.follows(noted));
        // A connection that was heard late has a later number.
        assert!(Moment::at(7, 300, 2).follows(Moment::at(7, 250, 5)));
        for time_ns in [0, 150, u64::MAX] {
            let (other, next) = (Moment::at(8, time_ns, 2), Moment::at(8, time_ns, 4));
            assert!(next.follows(noted) && !noted.follows(next) && !other.follows(noted));
        }
    }
}
