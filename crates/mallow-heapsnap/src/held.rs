//! What grew between two snapshots, by who holds it.
//!
//! Objects are put together by their class and by the class of the object that dominates them: the sessions that an array holds. A group
//! that has more objects and retains more in the second snapshot has grown. What such a group's objects retain themselves has grown as well, and
//! is told with them: of an array full of sessions, the sessions are told, and not their names.

use crate::diff::{ClassNames, ClassesBefore, Others, identity};
use crate::{DominatorTree, Identity, ObjectId, Snapshot, Sum};
use rustc_hash::FxHashMap;

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
    /// `file:line` of whose objects there are the most more, of those for which that was traced, and how many more.
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

/// So many groups are told, ...
const GROUPS_MAX: usize = 10;

/// ... if they grew by this part of what the first grew by.
const PART_MIN: u64 = 100;

/// What grew, the most bytes first that new objects retain: 10 groups at most, and none of less than a hundredth of the first. Where new objects cannot be told,
/// each one more is taken to retain what half of its group do.
pub fn held_growth(before: Dominated<'_>, after: Dominated<'_>) -> Vec<HeldGrowth> {
    let mut groups = Groups::default();
    let (old_graph, new_graph) = (&before.snapshot.graph, &after.snapshot.graph);
    let identity = identity(&[Some(old_graph), Some(new_graph)]);
    let classes = ClassesBefore::new(old_graph, new_graph, identity, &mut groups.names);
    let old = groups.sums(before, |object| classes.of(object));
    let classes = groups.names.of(new_graph);
    let new = groups.sums(after, |object| classes[new_graph.class_of(object).0 as usize]);
    let old_sum = |group: usize| old.sums.get(group).copied().unwrap_or_default();
    let more_objects = |group: usize| new.sums[group].objects.saturating_sub(old_sum(group).objects);
    let more = |group: usize| new.sums[group].retained_bytes.saturating_sub(old_sum(group).retained_bytes);
    let is_new = new_objects(before.snapshot, after.snapshot, identity, &mut groups.names);
    // What new objects retain; of a group that has grown because one that was there has, this is little.
    let by_new = match is_new.as_deref() {
        Some(is_new) => new.retained_by(after.tree, is_new),
        None => {
            let medians = new.medians(after.tree);
            let of = |group: usize| more_objects(group).saturating_mul(medians[group]);
            (0..new.sums.len()).map(of).collect()
        }
    };
    let rank = |group: usize| by_new[group].min(more(group));
    let mut growing: Vec<usize> =
        (0..new.sums.len()).filter(|group| more_objects(*group) > 0 && rank(*group) > 0).collect();
    growing.sort_by_key(|group| (std::cmp::Reverse((rank(*group), more(*group))), *group));
    let least = growing.first().map_or(0, |first| rank(*first)) / PART_MIN;
    let mut told = Vec::new();
    let mut covered = (Vec::new(), Vec::new());
    for group in growing.into_iter().take_while(|group| rank(*group) >= least) {
        let of = |covered: &[u64]| covered.get(group).copied().unwrap_or(0);
        let covered_more = of(&covered.1).saturating_sub(of(&covered.0));
        if covered_more * 2 > more_objects(group) {
            continue;
        }
        told.push(group as u32);
        if told.len() == GROUPS_MAX {
            break;
        }
        covered = (old.covered(before.tree, &told), new.covered(after.tree, &told));
    }
    let examples = examples(before, after, (&old.group_of, &new.group_of), &told, is_new.as_deref());
    let sites = sites((before, &old.group_of), (after, &new.group_of), &told);
    let row = |group: u32| {
        let (class, holder) = groups.keys[group as usize];
        let (kind, class) = groups.names.name(class);
        HeldGrowth {
            class,
            kind,
            holder: holder.map(|holder| groups.names.name(holder).1),
            before: old_sum(group as usize),
            after: new.sums[group as usize],
            example: examples[&group],
            site: sites.get(&group).cloned(),
        }
    };
    told.into_iter().map(row).collect()
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
    fn sums(&mut self, of: Dominated<'_>, class: impl Fn(ObjectId) -> u32) -> Grouped {
        let graph = &of.snapshot.graph;
        let mut group_of = vec![NONE; graph.len()];
        for (object, holder) in of.tree.walk() {
            let key = (class(object), holder.map(&class));
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

impl Grouped {
    /// What some objects of each group retain.
    fn retained_by(&self, tree: &DominatorTree, counts: &[bool]) -> Vec<u64> {
        let mut sums = vec![0u64; self.sums.len()];
        let of_group = |object: ObjectId| {
            let group = self.group_of[object.0 as usize];
            Some(group).filter(|group| *group != NONE && counts[object.0 as usize])
        };
        tree.topmost(sums.len(), of_group, |group, _, bytes| {
            let sum = &mut sums[group as usize];
            *sum = sum.saturating_add(bytes);
        });
        sums
    }

    /// What half of the objects of each group retain, and no more: the mean of those whose bytes have as many bits as those of the one in the middle.
    fn medians(&self, tree: &DominatorTree) -> Vec<u64> {
        let mut by_bits = FxHashMap::<(u32, u32), (u64, u64)>::default();
        for (object, _) in tree.walk() {
            let bytes = tree.retained_bytes(object).unwrap_or(0);
            let key = (self.group_of[object.0 as usize], u64::BITS - bytes.leading_zeros());
            let (objects, sum) = by_bits.entry(key).or_default();
            *objects += 1;
            *sum = sum.saturating_add(bytes);
        }
        let mut rows: Vec<_> = by_bits.into_iter().collect();
        rows.sort_unstable();
        let mut medians = vec![0; self.sums.len()];
        for rows in rows.chunk_by(|(a, _), (b, _)| a.0 == b.0) {
            let half = rows.iter().map(|(_, (objects, _))| objects).sum::<u64>().div_ceil(2);
            let mut seen = 0;
            let middle = rows.iter().find(|(_, (objects, _))| {
                seen += objects;
                seen >= half
            });
            medians[rows[0].0.0 as usize] = middle.map_or(0, |(_, (objects, sum))| sum / objects);
        }
        medians
    }

    /// How many objects of each group are retained by one of the told groups.
    fn covered(&self, tree: &DominatorTree, told: &[u32]) -> Vec<u64> {
        let mut is_under = vec![false; self.group_of.len()];
        let mut counts = vec![0; self.sums.len()];
        for (object, holder) in tree.walk() {
            let Some(holder) = holder.map(|holder| holder.0 as usize) else { continue };
            if is_under[holder] || told.contains(&self.group_of[holder]) {
                is_under[object.0 as usize] = true;
                counts[self.group_of[object.0 as usize] as usize] += 1;
            }
        }
        counts
    }
}

/// Which objects of the second are not in the first; none where that cannot be told.
fn new_objects(
    before: &Snapshot,
    after: &Snapshot,
    identity: Identity,
    names: &mut ClassNames,
) -> Option<Vec<bool>> {
    if identity == Identity::Classes {
        return None;
    }
    let (mut old, graph) = (Others::new(&before.graph, names), &after.graph);
    let classes = names.of(graph);
    let mut is_new = |object: ObjectId| {
        let class = classes[graph.class_of(object).0 as usize];
        old.take(graph, object, class).is_none()
    };
    Some(graph.objects().map(&mut is_new).collect())
}

/// One object of each told group: a new one, held by the object that holds most of the new ones. Where new ones cannot be told, who
/// holds as many as somebody held before is taken for the same.
fn examples(
    before: Dominated<'_>,
    after: Dominated<'_>,
    group_of: (&[u32], &[u32]),
    told: &[u32],
    is_new: Option<&[bool]>,
) -> FxHashMap<u32, ObjectId> {
    let new = holder_counts(after.tree, group_of.1, told, |object| {
        is_new.is_none_or(|is_new| is_new[object.0 as usize])
    });
    let known = match is_new {
        Some(_) => HolderCounts::default(),
        None => holder_counts(before.tree, group_of.0, told, |_| true),
    };
    told.iter()
        .map(|group| {
            let mut counts = FxHashMap::<u64, u64>::default();
            known.iter().filter(|(key, _)| key.0 == *group).for_each(|(_, count)| {
                *counts.entry(count.objects).or_default() += 1;
            });
            let mut counts_of_holders: Vec<(u64, ObjectId)> = new
                .iter()
                .filter(|(key, _)| key.0 == *group)
                .map(|(_, count)| (count.objects, count.last))
                .collect();
            counts_of_holders.sort_unstable_by(|a, b| b.cmp(a));
            let is_other = |(objects, _): &&(u64, ObjectId)| match counts.get_mut(objects) {
                Some(left) if *left > 0 => {
                    *left -= 1;
                    false
                }
                _ => true,
            };
            let found = counts_of_holders
                .iter()
                .find(is_other)
                .or(counts_of_holders.first())
                .map(|(_, example)| *example);
            (*group, found.or_else(|| any(group_of.1, *group)).unwrap_or(ObjectId(0)))
        })
        .collect()
}

/// A group has grown, so it has objects.
fn any(group_of: &[u32], group: u32) -> Option<ObjectId> {
    group_of.iter().position(|of| *of == group).map(|at| ObjectId(at as u32))
}

/// Objects of a group that one object holds.
struct HolderCount {
    objects: u64,
    last: ObjectId,
}

/// By group, and by the object that holds them.
type HolderCounts = FxHashMap<(u32, Option<ObjectId>), HolderCount>;

fn holder_counts(
    tree: &DominatorTree,
    group_of: &[u32],
    told: &[u32],
    mut counts: impl FnMut(ObjectId) -> bool,
) -> HolderCounts {
    let mut counts_of_holders = HolderCounts::default();
    for (object, holder) in tree.walk() {
        let group = group_of[object.0 as usize];
        if told.contains(&group) && counts(object) {
            let count =
                counts_of_holders.entry((group, holder)).or_insert(HolderCount { objects: 0, last: object });
            count.objects += 1;
            count.last = count.last.max(object);
        }
    }
    counts_of_holders
}

/// The line of which each group has the most objects more.
fn sites(
    before: (Dominated<'_>, &[u32]),
    after: (Dominated<'_>, &[u32]),
    told: &[u32],
) -> FxHashMap<u32, (String, u64)> {
    let old = by_site(before, told);
    let mut most = FxHashMap::<u32, (u64, std::cmp::Reverse<(&str, u32)>)>::default();
    for ((group, file, line), count) in by_site(after, told) {
        let more = count.saturating_sub(old.get(&(group, file, line)).copied().unwrap_or(0));
        let row = (more, std::cmp::Reverse((file, line)));
        if more > 0 && most.get(&group).is_none_or(|known| row > *known) {
            most.insert(group, row);
        }
    }
    let named = |(group, (more, std::cmp::Reverse((file, line))))| (group, (format!("{file}:{line}"), more));
    most.into_iter().map(named).collect()
}

/// How many objects of a group each line made: files are numbered differently in each snapshot, so it is their names.
fn by_site<'a>((of, group_of): (Dominated<'a>, &[u32]), told: &[u32]) -> FxHashMap<(u32, &'a str, u32), u64> {
    let graph = &of.snapshot.graph;
    let mut counts = FxHashMap::<(u32, crate::SiteId), u64>::default();
    for object in graph.objects() {
        let group = group_of[object.0 as usize];
        if let Some(site) = graph.site_of(object).filter(|_| told.contains(&group)) {
            *counts.entry((group, site)).or_default() += 1;
        }
    }
    let mut named = FxHashMap::default();
    for ((group, site), count) in counts {
        let site = graph.site(site);
        *named.entry((group, graph.name(site.file), site.line)).or_default() += count;
    }
    named
}

#[cfg(test)]
#[path = "held_tests.rs"]
mod tests;
