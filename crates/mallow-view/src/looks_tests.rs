//! Appearances are compared with the visible frames themselves.

use super::*;
use mallow_stacks::{Address, StacksBuilder};
use proptest::prelude::*;

/// Stacks of locations of a few functions, so that different calls look the same; a function named `alloc::…` is plumbing.
fn stacks() -> impl Strategy<Value = (Stacks, Vec<Option<StackId>>)> {
    let name = prop::sample::select(vec!["a", "b", "c", "alloc::d"]);
    let locations = prop::collection::vec(prop::collection::vec(name, 1..4), 1..8);
    let calls = prop::collection::vec(prop::collection::vec(0_usize..8, 0..6), 1..12);
    (locations, calls).prop_map(|(locations, calls)| {
        let mut builder = StacksBuilder::default();
        let frame = |name: &&str| Frame { function: (*name).to_owned(), ..Frame::default() };
        let locations: Vec<_> = locations
            .iter()
            .zip(0..)
            .map(|(names, at)| {
                builder.location(Address::Anonymous { avma: at }, names.iter().map(frame).collect())
            })
            .collect();
        let stacks = calls
            .iter()
            .map(|calls| builder.stack(calls.iter().map(|at| locations[at % locations.len()])))
            .collect();
        (builder.finish(), stacks)
    })
}

proptest! {
    #[test]
    fn stacks_have_one_number_where_their_visible_frames_are_the_same((stacks, ids) in stacks()) {
        for shown in [FrameVisibility::All, FrameVisibility::WithoutPlumbing] {
            let mut both = [Appearances::of(&stacks, shown), Appearances::of_all(&stacks, shown)];
            for looks in &mut both {
                let seen: Vec<(Appearance, Vec<Place<'_>>)> = ids
                    .iter()
                    .map(|id| {
                        let named = looks.naming(*id);
                        let visible = looks.visible(named).map(Frame::place).collect();
                        (looks.of_stack(*id).0, visible)
                    })
                    .collect();
                for (one, one_visible) in &seen {
                    for (other, other_visible) in &seen {
                        prop_assert_eq!(one == other, one_visible == other_visible);
                    }
                }
            }
        }
    }
}
