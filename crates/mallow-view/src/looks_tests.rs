//! Appearances are compared with the visible frames themselves.

use super::*;
use mallow_stacks::{Address, StackNode, StacksBuilder};
use proptest::prelude::*;

/// Stacks of locations of a few functions, so that different calls look the same; a function named `alloc::…` is plumbing. A file of somebody else's may have a
/// call twice under one caller.
fn stacks() -> impl Strategy<Value = (Stacks, Vec<Option<StackId>>)> {
    let name = prop::sample::select(vec!["a", "b", "c", "alloc::d"]);
    let locations = prop::collection::vec(prop::collection::vec(name, 1..4), 1..8);
    let calls = prop::collection::vec(prop::collection::vec(0_usize..8, 0..6), 1..12);
    (locations, calls, 0_usize..4).prop_map(|(locations, calls, copied)| {
        let mut builder = StacksBuilder::default();
        let frame = |name: &&str| Frame { function: (*name).to_owned(), ..Frame::default() };
        let locations: Vec<_> = locations
            .iter()
            .zip(0..)
            .map(|(names, at)| {
                builder.location(Address::Anonymous { avma: at }, names.iter().map(frame).collect())
            })
            .collect();
        let mut ids: Vec<Option<StackId>> = calls
            .iter()
            .map(|calls| builder.stack(calls.iter().map(|at| locations[at % locations.len()])))
            .collect();
        let mut stacks = builder.finish();
        for at in 0..copied.min(ids.len()) {
            let mut chain: Vec<StackId> = stacks.chain(ids[at]).collect();
            let mut parent = None;
            while let Some(id) = chain.pop() {
                stacks.nodes.push(StackNode { parent, location: stacks.node(id).location });
                parent = Some(StackId(stacks.nodes.len() as u32 - 1));
            }
            ids.push(parent);
        }
        (stacks, ids)
    })
}

/// As a trace has them: the nodes of each process follow those of the one before.
#[test]
fn equal_stacks_of_two_processes_look_the_same() {
    let mut builder = StacksBuilder::default();
    let frame = |name: &str| vec![Frame { function: name.to_owned(), ..Frame::default() }];
    let main = builder.location(Address::Anonymous { avma: 1 }, frame("main"));
    let work = builder.location(Address::Anonymous { avma: 2 }, frame("work"));
    let first = builder.stack([main, work]);
    let mut stacks = builder.finish();
    let base = stacks.nodes.len() as u32;
    let again: Vec<_> = stacks.nodes.clone();
    stacks.nodes.extend(again.into_iter().map(|mut node| {
        node.parent = node.parent.map(|parent| StackId(base + parent.0));
        node
    }));
    let second = first.map(|stack| StackId(base + stack.0));
    for mut looks in
        [Appearances::of(&stacks, FrameVisibility::All), Appearances::of_all(&stacks, FrameVisibility::All)]
    {
        assert_eq!(looks.of_stack(first), looks.of_stack(second));
        assert_ne!(looks.of_stack(first).0, None);
    }
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
