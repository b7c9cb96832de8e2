//! Metrics of stacks, merged where their visible frames are the same: as [`crate::Sites`] does it for the metrics of sites.

use crate::looks::Appearances;
use crate::sites::Wanted;
use crate::{Filter, FrameVisibility};
use mallow_base::Frame;
use mallow_profile::{Profile, StackId};
use rustc_hash::FxHashMap;

/// One row: all stacks that look the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlaceRow<T> {
    /// Their metrics together.
    pub metrics: T,
    /// One of the stacks; none when no stack was taken.
    pub stack: Option<StackId>,
    /// How many frames of that stack are hidden on its leaf side.
    pub folded: usize,
}

impl<T> PlaceRow<T> {
    /// The visible frames, leaf first.
    pub fn frames<'a>(&self, profile: &'a Profile) -> impl Iterator<Item = &'a Frame> + use<'a, T> {
        profile.frames(self.stack).skip(self.folded)
    }
}

/// Merges the metrics of the wanted stacks, in the order of first sight.
pub(crate) fn places<T: Default, F>(
    profile: &Profile,
    shown: FrameVisibility,
    filter: &Filter,
    metrics: impl IntoIterator<Item = (Option<StackId>, F)>,
    mut add: impl FnMut(&mut T, F),
) -> Vec<PlaceRow<T>> {
    let mut looks = Appearances::of(&profile.stacks, shown);
    let wanted = Wanted::of(&profile.stacks, filter);
    let mut rows: Vec<PlaceRow<T>> = Vec::new();
    let mut by_look = FxHashMap::default();
    for (stack, metrics) in metrics.into_iter().filter(|(stack, _)| wanted.includes(*stack)) {
        let (look, folded) = looks.of_stack(stack);
        let row = *by_look.entry(look).or_insert_with(|| {
            rows.push(PlaceRow { metrics: T::default(), stack, folded });
            rows.len() - 1
        });
        add(&mut rows[row].metrics, metrics);
    }
    rows
}
