//! The order of records of several rings.
//!
//! Each ring is in the order of time, nearly; together they are not, and a ring that is read later may hold what came earlier. So a round
//! hands out only what is not later than the beginning of the round before it: whatever is that old has been written since, in every ring.

/// The position of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Waiting {
    pub(crate) time_ns: u64,
    pub(crate) ring: usize,
    pub(crate) at: u64,
}

/// Decides up to when records are handed out.
#[derive(Debug, Default)]
pub(crate) struct Rounds {
    before_ns: u64,
}

impl Rounds {
    /// Begins a round at this time; returns up to when its records may be handed out.
    pub(crate) fn begin(&mut self, now_ns: u64) -> u64 {
        std::mem::replace(&mut self.before_ns, now_ns)
    }
}

/// Returns the records that may be processed, in the order of time. In each ring they are those before the first that
/// may not, so that its space can be released.
pub(crate) fn in_order(rings: &[Vec<Waiting>], up_to_ns: u64, out: &mut Vec<Waiting>) {
    out.clear();
    for ring in rings {
        out.extend(ring.iter().take_while(|record| record.time_ns <= up_to_ns));
    }
    out.sort_by_key(|record| (record.time_ns, record.ring, record.at));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Records are written to rings at their time or a little later, and read ring by ring while more are written.
        #[test]
        fn whatever_the_rings_are_read_records_come_in_the_order_of_time(
            records in proptest::collection::vec((1_u64..20, 0_usize..3, 0_u64..30), 1..200),
            pauses in proptest::collection::vec(31_u64..100, 1..100),
        ) {
            let mut time = 0;
            // (time, ring, written at): a record is written less than the shortest pause after its time, in the order of its ring.
            let mut written = [0_u64; 3];
            let records: Vec<(u64, usize, u64)> = records
                .iter()
                .map(|&(step, ring, late)| {
                    time += step;
                    written[ring] = written[ring].max(time + late);
                    (time, ring, written[ring])
                })
                .collect();
            let end = records.iter().map(|record| record.2).max().unwrap_or(0);
            let mut rounds = Rounds::default();
            let (mut handed, mut taken, mut now) = (Vec::new(), [0_usize; 3], 0);
            let mut pauses = pauses.iter().cycle();
            let mut out = Vec::new();
            while now <= end + 300 {
                now += pauses.next().copied().unwrap_or(50);
                let up_to = rounds.begin(now);
                let waiting: Vec<Vec<Waiting>> = (0..3)
                    .map(|ring| {
                        // Each ring is read a little later than the one before it.
                        let seen = now + ring as u64 * 7;
                        let of_ring = records.iter().filter(|record| record.1 == ring).skip(taken[ring]);
                        let seen = of_ring.take_while(|record| record.2 <= seen);
                        seen.enumerate().map(|(at, r)| Waiting { time_ns: r.0, ring, at: at as u64 }).collect()
                    })
                    .collect();
                in_order(&waiting, up_to, &mut out);
                for record in &out {
                    taken[record.ring] += 1;
                    handed.push(record.time_ns);
                }
            }
            let expected: Vec<u64> = records.iter().map(|record| record.0).collect();
            prop_assert_eq!(handed, expected);
        }
    }
}
