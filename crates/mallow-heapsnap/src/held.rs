//! What grew between two snapshots, by who holds it.
//!
//! Objects are put together by their class and by the class of the object that dominates them: the sessions that an array holds. A group
//! that has more objects and retains more in the second snapshot has grown. What such a group's objects retain themselves has grown as well, and
//! is told with them: of an array full of sessions, the sessions are told, and not their names.

use crate::diff::{ClassNames, Others, identity};
use crate::{DominatorTree, Identity, ObjectId, Snapshot, Sum};
use rustc_hash::{FxHashMap, FxHashSet};

/// A snapshot and who keeps whom alive in it.
#[derive(Clone, Copy, Debug)]
pub struct Dominated<'a> {
    /// The snapshot.
    pub snapshot: &'a Snapshot,
    /// Of its graph.
    pub tree: &'a DominatorTree,
}

/// Objects of a class that objects of another class hold, before and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldGrowth {
    /// Their class.
    pub class: String,
    /// Their kind.
    pub kind: String,
    /// The class of what holds them; none where that is a root, or several objects that only roots hold.
    pub holder: Option<String>,
    /// In the first snapshot.
    pub before: Sum,
    /// In the second.
    pub after: Sum,
    /// One of them in the second, which is not in the first as far as that can be told.
    pub example: ObjectId,
    /// `file:line` where most of those in the second were made for which that was traced, and how many.
    pub site: Option<(String, u64)>,
}

impl HeldGrowth {
    /// How many more there are.
    pub fn more_objects(&self) -> u64 {
        self.after.objects - self.before.objects
    }

    /// How many bytes more they retain.
    pub fn more_bytes(&self) -> u64 {
        self.after.retained_bytes - self.before.retained_bytes
    }
}

/// So many groups are looked at: those that grew most.
const GROUPS_MAX: usize = 100;

/// What grew, the most bytes first; 100 groups at most.
pub fn held_growth(before: Dominated<'_>, after: Dominated<'_>) -> Vec<HeldGrowth> {
    let mut groups = Groups::default();
    let old = groups.sums(before);
    let new = groups.sums(after);
    let old_sum = |group: usize| old.sums.get(group).copied().unwrap_or_default();
    let grows = |group: &usize| {
        let (before, after) = (old_sum(*group), new.sums[*group]);
        after.objects > before.objects && after.retained_bytes > before.retained_bytes
    };
    let mut growing: Vec<usize> = (0..new.sums.len()).filter(grows).collect();
    let more = |group: usize| new.sums[group].retained_bytes - old_sum(group).retained_bytes;
    growing.sort_by_key(|group| (std::cmp::Reverse(more(*group)), *group));
    growing.truncate(GROUPS_MAX);
    let examples = examples(before, after, &mut groups.names, &new.group_of, &growing);
    let mut told = FxHashSet::default();
    growing.retain(|group| {
        let mut above = after.tree.dominator(examples[group]);
        while let Some(object) = above {
            if told.contains(&new.group_of[object.0 as usize]) {
                return false;
            }
            above = after.tree.dominator(object);
        }
        told.insert(*group as u32)
    });
    let sites = sites(after, &new.group_of, &told);
    let row = |group: usize| {
        let (class, holder) = groups.keys[group];
        let (kind, class) = groups.names.name(class);
        HeldGrowth {
            class,
            kind,
            holder: holder.map(|holder| groups.names.name(holder).1),
            before: old_sum(group),
            after: new.sums[group],
            example: examples[&group],
            site: sites.get(&(group as u32)).cloned(),
        }
    };
    growing.into_iter().map(row).collect()
}

/// Class and holder's class, numbered alike in both snapshots.
#[derive(Default)]
struct Groups {
    names: ClassNames,
    numbers: FxHashMap<(u32, Option<u32>), u32>,
    keys: Vec<(u32, Option<u32>)>,
}

/// The groups of one snapshot.
struct Grouped {
    /// Of each object; none for those that nothing holds.
    group_of: Vec<u32>,
    sums: Vec<Sum>,
}

/// The group of what nothing holds.
const NONE: u32 = u32::MAX;

impl Groups {
    fn sums(&mut self, of: Dominated<'_>) -> Grouped {
        let graph = &of.snapshot.graph;
        let classes = self.names.of(graph);
        let class = |object: ObjectId| classes[graph.class_of(object).0 as usize];
        let mut group_of = vec![NONE; graph.len()];
        for (object, holder) in of.tree.walk() {
            let key = (class(object), holder.map(class));
            group_of[object.0 as usize] = *self.numbers.entry(key).or_insert_with(|| {
                self.keys.push(key);
                self.keys.len() as u32 - 1
            });
        }
        let mut sums = vec![Sum::default(); self.keys.len()];
        for object in graph.objects() {
            if let Some(sum) = sums.get_mut(group_of[object.0 as usize] as usize) {
                sum.add(graph.size_bytes(object));
            }
        }
        let of_group = |object: ObjectId| Some(group_of[object.0 as usize]).filter(|group| *group != NONE);
        of.tree.topmost(self.keys.len(), of_group, |group, _, bytes| {
            let sum = &mut sums[group as usize].retained_bytes;
            *sum = sum.saturating_add(bytes);
        });
        Grouped { group_of, sums }
    }
}

/// One object of each of some groups, a new one if there is one: the last in the file, where objects of one age stand together in none of the
/// formats.
fn examples(
    before: Dominated<'_>,
    after: Dominated<'_>,
    names: &mut ClassNames,
    group_of: &[u32],
    wanted: &[usize],
) -> FxHashMap<usize, ObjectId> {
    let graphs = [Some(&before.snapshot.graph), Some(&after.snapshot.graph)];
    let mut old =
        (identity(&graphs) != Identity::Classes).then(|| Others::new(&before.snapshot.graph, names));
    let graph = &after.snapshot.graph;
    let classes = names.of(graph);
    let wanted: FxHashSet<u32> = wanted.iter().map(|group| *group as u32).collect();
    let mut found = FxHashMap::<usize, (bool, ObjectId)>::default();
    for object in graph.objects() {
        let group = group_of[object.0 as usize];
        if !wanted.contains(&group) {
            continue;
        }
        let class = classes[graph.class_of(object).0 as usize];
        let is_new = old.as_mut().is_none_or(|old| old.take(graph, object, class).is_none());
        let known = found.entry(group as usize).or_insert((is_new, object));
        if is_new || !known.0 {
            *known = (is_new, object);
        }
    }
    found.into_iter().map(|(group, (_, object))| (group, object)).collect()
}

/// The line that made most of each group.
fn sites(after: Dominated<'_>, group_of: &[u32], told: &FxHashSet<u32>) -> FxHashMap<u32, (String, u64)> {
    let graph = &after.snapshot.graph;
    let mut counts = FxHashMap::<(u32, crate::SiteId), u64>::default();
    for object in graph.objects() {
        let group = group_of[object.0 as usize];
        if let Some(site) = graph.site_of(object).filter(|_| told.contains(&group)) {
            *counts.entry((group, site)).or_default() += 1;
        }
    }
    let mut most = FxHashMap::<u32, (u64, std::cmp::Reverse<u32>)>::default();
    for ((group, site), count) in counts {
        let known = most.entry(group).or_default();
        *known = (*known).max((count, std::cmp::Reverse(site.0)));
    }
    let named = most.into_iter().map(|(group, (count, std::cmp::Reverse(site)))| {
        let site = graph.site(crate::SiteId(site));
        (group, (format!("{}:{}", graph.name(site.file), site.line), count))
    });
    named.collect()
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
