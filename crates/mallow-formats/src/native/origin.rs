//! What an imported profile could tell, as bits in the trace and as names in the profile.

use mallow_profile::{Known, TimeUnit};

/// One bit for each field, in the order that `mallow_wire::trace::Origin` states.
pub(super) fn known_of(bits: u64) -> Known {
    let mut known = Known::NOTHING;
    for (bit, field) in known.fields().into_iter().enumerate() {
        *field = bits >> bit & 1 == 1;
    }
    known
}

pub(super) fn bits_of(mut known: Known) -> u64 {
    known.fields().into_iter().enumerate().map(|(bit, field)| u64::from(*field) << bit).sum()
}

/// A unit that this version does not know is taken for microseconds.
pub(super) fn time_unit_of(number: u32) -> TimeUnit {
    match number {
        1 => TimeUnit::Instructions,
        2 => TimeUnit::Bytes,
        _ => TimeUnit::Microseconds,
    }
}

pub(super) fn number_of(unit: TimeUnit) -> u32 {
    match unit {
        TimeUnit::Microseconds => 0,
        TimeUnit::Instructions => 1,
        TimeUnit::Bytes => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_its_bit() {
        assert_eq!((bits_of(Known::NOTHING), bits_of(Known::ALL)), (0, 0xfff));
        for bit in 0..12 {
            assert_eq!(bits_of(known_of(1 << bit)), 1 << bit);
        }
    }

    #[test]
    fn units_come_back() {
        for unit in [TimeUnit::Microseconds, TimeUnit::Instructions, TimeUnit::Bytes] {
            assert_eq!(time_unit_of(number_of(unit)), unit);
        }
    }
}
