//! Which sequences neither begin nor continue another one.

/// Returns for each of `count` sequences, which `sequence` gives last item first, whether it is apart: no other one is a prefix of it or has it as a prefix.
pub(super) fn apart<'a>(count: usize, sequence: impl Fn(usize) -> &'a [u32]) -> Vec<bool> {
    let items = |index: u32| sequence(index as usize).iter().rev();
    let mut sorted: Vec<u32> = (0..count as u32).collect();
    sorted.sort_by(|one, other| items(*one).cmp(items(*other)));
    let mut apart = vec![true; count];
    // What a sequence begins follows it at once in this order, so one that begins others is followed by all of them.
    let mut first: Option<u32> = None;
    for index in sorted {
        match first {
            Some(before) if items(index).take(sequence(before as usize).len()).eq(items(before)) => {
                apart[before as usize] = false;
                apart[index as usize] = false;
            }
            _ => first = Some(index),
        }
    }
    apart
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_begins_or_continues_another_is_not_apart(
            sequences in prop::collection::vec(prop::collection::vec(0_u32..3, 0..4), 0..9),
        ) {
            let begins = |one: &[u32], other: &[u32]| one.ends_with(other) || other.ends_with(one);
            let naive: Vec<bool> = (0..sequences.len())
                .map(|at| !(0..sequences.len()).any(|other| at != other && begins(&sequences[at], &sequences[other])))
                .collect();
            prop_assert_eq!(apart(sequences.len(), |at| &sequences[at]), naive);
        }
    }
}
