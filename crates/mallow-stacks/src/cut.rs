//! Stacks that come to more than anybody reads, cut.
//!
//! Stacks share their callers, so a few bytes of a file can be very many sites on very deep stacks, which most other tools' files hold in full,
//! one by one. Where that is out of all proportion, callers are left out, and long names are.

use crate::{Location, Site, StackId, Stacks};
use mallow_base::Frame;

/// As much text as a frame takes anyway.
const TEXT_BYTES: usize = 64;

impl Stacks {
    /// Cuts stacks so that those of all sites, written one by one, come to this many frames of usual length. Ids stay as they are. Gives how many
    /// frames are left of a stack at most; none if nothing was cut.
    pub fn cut_to<W>(&mut self, frames_max: u64, sites: &[Site<W>]) -> Option<u64> {
        let weights: Vec<u64> = self.locations.iter().map(weight).collect();
        let depths = self.depths(&weights, u64::MAX);
        let of_site = |site: &Site<W>| site.stack.map_or(0, |stack| depths[stack.0 as usize]);
        let whole = sites.iter().fold(0u64, |sum, site| sum.saturating_add(of_site(site)));
        if whole <= frames_max {
            return None;
        }
        let each_max = (frames_max / 2 / sites.len() as u64).max(1);
        self.locations.iter_mut().for_each(|location| shorten(location, each_max));
        let weights: Vec<u64> = self.locations.iter().map(weight).collect();
        let depths = self.depths(&weights, each_max);
        for (node, depth) in self.nodes.iter_mut().zip(depths) {
            // It begins anew here.
            if depth == weights[node.location.0 as usize] {
                node.parent = None;
            }
        }
        Some(each_max)
    }

    /// What each node's stack comes to, up to where it was to be cut.
    fn depths(&self, weights: &[u64], each_max: u64) -> Vec<u64> {
        let mut depths: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let own = weights[node.location.0 as usize];
            let depth = match node.parent {
                Some(StackId(parent)) => own.saturating_add(depths[parent as usize]),
                None => own,
            };
            depths.push(if depth > each_max { own } else { depth });
        }
        depths
    }
}

fn weight(location: &Location) -> u64 {
    location.frames.iter().map(of_frame).fold(0, u64::saturating_add)
}

fn of_frame(frame: &Frame) -> u64 {
    let texts = [Some(&frame.function), frame.file.as_ref(), frame.module.as_ref()];
    let bytes: usize = texts.into_iter().flatten().map(String::len).sum();
    1 + (bytes / TEXT_BYTES) as u64
}

/// Leaves as many frames as there is room for, and of the innermost one as much as there is.
fn shorten(location: &mut Location, each_max: u64) {
    let mut left = each_max;
    let fits = |frame: &&Frame| {
        let weight = of_frame(frame);
        let is_room = weight <= left;
        left = left.saturating_sub(weight);
        is_room
    };
    let kept = location.frames.iter().take_while(fits).count().max(1);
    location.frames.truncate(kept);
    if let Some(first) = location.frames.first_mut().filter(|first| of_frame(first) > each_max) {
        let bytes = usize::try_from(each_max).unwrap_or(usize::MAX).saturating_mul(TEXT_BYTES / 4);
        for text in
            [Some(&mut first.function), first.file.as_mut(), first.module.as_mut()].into_iter().flatten()
        {
            let end = (0..=bytes.min(text.len())).rev().find(|at| text.is_char_boundary(*at));
            text.truncate(end.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Address, Site, StacksBuilder};
    use crate::{ProcessIndex, Stacks};
    use mallow_base::Frame;
    use proptest::prelude::*;

    /// A chain of calls with a site at each, whose frames have names of this length.
    fn chain(sites: usize, name: usize, inlined: usize) -> (Stacks, Vec<Site<()>>) {
        let mut builder = StacksBuilder::default();
        let mut locations = Vec::new();
        let mut found = Vec::new();
        for at in 0..sites {
            let frame = Frame { function: format!("{at:0name$}"), ..Frame::default() };
            locations.push(builder.location(Address::Unknown, vec![frame; inlined]));
            let stack = builder.stack(locations.iter().copied());
            found.push(Site { process: ProcessIndex(0), stack, totals: () });
        }
        (builder.finish(), found)
    }

    fn written(stacks: &Stacks, sites: &[Site<()>]) -> u64 {
        let frames = sites.iter().flat_map(|site| stacks.frames(site.stack));
        frames.map(|frame| 1 + (frame.function.len() / super::TEXT_BYTES) as u64).sum()
    }

    #[test]
    fn what_is_in_proportion_stays_as_it_is() {
        let (mut stacks, sites) = chain(100, 20, 1);
        let before = stacks.clone();
        assert_eq!((stacks.cut_to(5050, &sites), &stacks), (None, &before));
        assert_eq!(stacks.cut_to(5049, &sites), Some(25));
        assert_eq!(stacks.frames(sites[24].stack).count(), 25);
        assert_eq!(stacks.frames(sites[25].stack).count(), 1);
    }

    proptest! {
        #[test]
        fn what_is_written_is_bounded_and_each_site_keeps_where_it_is(
            sites in 1..200usize, name in 1..5000usize, inlined in 1..20usize, frames_max in 1000..20_000u64,
        ) {
            let (mut stacks, found) = chain(sites, name, inlined);
            let names: Vec<String> =
                found.iter().map(|site| stacks.frames(site.stack).next().unwrap().function.clone()).collect();
            let cut = stacks.cut_to(frames_max, &found);
            prop_assert!(written(&stacks, &found) <= frames_max, "{cut:?}");
            for (site, name) in found.iter().zip(names) {
                let left = &stacks.frames(site.stack).next().unwrap().function;
                prop_assert!(name.starts_with(left.as_str()) && !left.is_empty());
            }
        }
    }
}
