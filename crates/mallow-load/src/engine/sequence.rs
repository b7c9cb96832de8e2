//! The order in which targets are requested.
//!
//! The order is computed once, as a round in which every target has as many places as its weight, evenly spread:
//! beside fifty targets of weight 1, a target of weight 50 is requested every other time, and not fifty times in a
//! row.

use crate::{Order, Target};

/// The maximum number of places in a round. Beyond that, weights are scaled down, but to no less than one place.
const ROUND_MAX: u64 = 1 << 20;

/// The round, shared by all workers.
#[derive(Debug)]
pub(crate) struct Sequence {
    order: Order,
    /// Indices of targets.
    round: Vec<u32>,
}

/// The position of one worker.
#[derive(Debug)]
pub(crate) struct Cursor {
    place: u64,
}

impl Sequence {
    /// Returns the sequence of `targets`, which must not be empty.
    pub(crate) fn new(order: Order, targets: &[Target]) -> Sequence {
        let round = match order {
            Order::Once => (0..targets.len() as u32).collect(),
            Order::Sequential | Order::Random(_) => round_of(targets),
        };
        Sequence { order, round }
    }

    /// Returns the maximum number of requests.
    pub(crate) fn requests_max(&self) -> Option<u64> {
        (self.order == Order::Once).then_some(self.round.len() as u64)
    }

    /// Returns the start position of the worker `index` of `workers`.
    pub(crate) fn cursor(&self, index: u32, workers: u32) -> Cursor {
        let place = match self.order {
            Order::Random(seed) => mixed(seed ^ mixed(u64::from(index))),
            _ => u64::from(index) * self.round.len() as u64 / u64::from(workers.max(1)),
        };
        Cursor { place }
    }

    /// Returns the index of the target of the request `number`, and advances.
    pub(crate) fn next(&self, cursor: &mut Cursor, number: u64) -> usize {
        let length = self.round.len() as u64;
        let place = match self.order {
            Order::Once => number,
            Order::Sequential => {
                cursor.place += 1;
                cursor.place - 1
            }
            Order::Random(_) => {
                cursor.place = cursor.place.wrapping_add(GOLDEN);
                mixed(cursor.place)
            }
        };
        self.round[(place % length) as usize] as usize
    }
}

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

/// The finalizer of splitmix64 (Steele, Lea, Flood 2014); applied to multiples of the golden ratio, it is that generator.
fn mixed(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// Puts every target's k-th place of w at (k + ½) / w of the round; ties go to the earlier target.
fn round_of(targets: &[Target]) -> Vec<u32> {
    let mut weights: Vec<u64> = targets.iter().map(|target| u64::from(target.weight)).collect();
    if weights.iter().all(|weight| *weight == 0) {
        weights.fill(1);
    }
    let divisor = weights.iter().copied().fold(0, greatest_common_divisor).max(1);
    let total: u64 = weights.iter().sum::<u64>() / divisor;
    for weight in &mut weights {
        *weight /= divisor;
        if total > ROUND_MAX && *weight > 0 {
            *weight = (*weight * ROUND_MAX / total).max(1);
        }
    }
    let mut places: Vec<(f64, u32)> = Vec::new();
    for (index, weight) in weights.iter().enumerate() {
        places.extend((0..*weight).map(|k| ((k as f64 + 0.5) / *weight as f64, index as u32)));
    }
    places.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    places.into_iter().map(|(_, index)| index).collect()
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn targets(weights: &[u32]) -> Vec<Target> {
        weights.iter().map(|weight| Target { weight: *weight, ..Target::get("/") }).collect()
    }

    fn first(sequence: &Sequence, cursor: &mut Cursor, count: u64) -> Vec<usize> {
        (0..count).map(|number| sequence.next(cursor, number)).collect()
    }

    #[test]
    fn equal_weights_keep_their_order_and_each_worker_begins_elsewhere() {
        let sequence = Sequence::new(Order::Sequential, &targets(&[7, 7, 7, 7]));
        assert_eq!(first(&sequence, &mut sequence.cursor(0, 2), 6), [0, 1, 2, 3, 0, 1]);
        assert_eq!(first(&sequence, &mut sequence.cursor(1, 2), 4), [2, 3, 0, 1]);
    }

    #[test]
    fn a_heavy_target_is_spread_over_the_round() {
        let sequence = Sequence::new(Order::Sequential, &targets(&[3, 1, 1]));
        assert_eq!(first(&sequence, &mut sequence.cursor(0, 1), 5), [0, 0, 1, 2, 0]);
    }

    #[test]
    fn once_follows_the_number_of_the_request() {
        let sequence = Sequence::new(Order::Once, &targets(&[5, 1, 1]));
        assert_eq!(sequence.requests_max(), Some(3));
        assert_eq!(first(&sequence, &mut sequence.cursor(1, 2), 3), [0, 1, 2]);
    }

    #[test]
    fn chance_is_the_same_again_with_the_same_seed_and_keeps_to_the_weights() {
        let sequence = Sequence::new(Order::Random(7), &targets(&[9, 1]));
        let once = first(&sequence, &mut sequence.cursor(3, 8), 10_000);
        assert_eq!(once, first(&sequence, &mut sequence.cursor(3, 8), 10_000));
        assert_ne!(once, first(&sequence, &mut sequence.cursor(4, 8), 10_000));
        let light = once.iter().filter(|index| **index == 1).count();
        // The expected 1,000 and five standard deviations of 30.
        assert!((850..=1150).contains(&light), "{light}");
    }

    #[test]
    fn large_weights_are_scaled_and_small_ones_stay() {
        let round = round_of(&targets(&[u32::MAX, u32::MAX - 1, 1]));
        assert_eq!(round.iter().filter(|index| **index == 2).count(), 1);
        assert!(round.len() as u64 <= ROUND_MAX + 3, "{}", round.len());
        assert_eq!(round_of(&targets(&[0, 0])), [0, 1]);
    }

    proptest! {
        /// Compares the round with the weights.
        #[test]
        fn every_target_has_its_share(weights in proptest::collection::vec(0_u32..20, 1..20)) {
            let round = round_of(&targets(&weights));
            let divisor = weights.iter().fold(0, |a, b| greatest_common_divisor(a, u64::from(*b)));
            for (index, weight) in weights.iter().enumerate() {
                let count = round.iter().filter(|it| **it as usize == index).count() as u64;
                let expected = u64::from(*weight).checked_div(divisor).unwrap_or(1);
                prop_assert_eq!(count, expected);
            }
        }
    }
}
