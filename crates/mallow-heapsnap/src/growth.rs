//! Which classes grow over a series of snapshots.

use crate::Histogram;
use rustc_hash::FxHashMap;

/// A class in each of some snapshots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassSeries {
    /// Its name.
    pub name: String,
    /// Its objects' kind.
    pub kind: String,
    /// How many objects there were in each.
    pub objects: Vec<u64>,
    /// How many bytes they had.
    pub bytes: Vec<u64>,
}

impl ClassSeries {
    /// Returns whether there were more objects in each snapshot than in the one before.
    pub fn grows_in_each(&self) -> bool {
        self.objects.len() > 1 && self.objects.windows(2).all(|pair| pair[0] < pair[1])
    }

    /// How many bytes more there are in the last than in the first; 0 for less.
    pub fn growth_bytes(&self) -> u64 {
        match (self.bytes.first(), self.bytes.last()) {
            (Some(first), Some(last)) => last.saturating_sub(*first),
            _ => 0,
        }
    }
}

/// How the classes of a series came along.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeapGrowth {
    /// First those that grew in each step, then by the bytes that they grew.
    pub classes: Vec<ClassSeries>,
    /// Whether each snapshot holds its whole heap: otherwise a class may have grown by being read.
    pub is_complete: bool,
}

/// Collects the classes of snapshots, one at a time.
#[derive(Clone, Debug, Default)]
pub struct Growth {
    snapshots: usize,
    parts: usize,
    classes: FxHashMap<(String, String), (Vec<u64>, Vec<u64>)>,
}

impl Growth {
    /// Takes the next snapshot in.
    pub fn add(&mut self, snapshot: &Histogram) {
        self.parts += usize::from(!snapshot.is_whole);
        for (kind, name, sum) in snapshot.classes() {
            let key = (kind.to_owned(), name.to_owned());
            let (objects, bytes) = self.classes.entry(key).or_default();
            objects.resize(self.snapshots, 0);
            bytes.resize(self.snapshots, 0);
            objects.push(sum.objects);
            bytes.push(sum.bytes);
        }
        self.snapshots += 1;
    }

    /// All classes.
    pub fn finish(self) -> HeapGrowth {
        let mut series: Vec<ClassSeries> = self
            .classes
            .into_iter()
            .map(|((kind, name), (mut objects, mut bytes))| {
                objects.resize(self.snapshots, 0);
                bytes.resize(self.snapshots, 0);
                ClassSeries { name, kind, objects, bytes }
            })
            .collect();
        series.sort_by(|a, b| {
            let by = |class: &ClassSeries| (class.grows_in_each(), class.growth_bytes());
            by(b).cmp(&by(a)).then_with(|| (&a.name, &a.kind).cmp(&(&b.name, &b.kind)))
        });
        HeapGrowth { classes: series, is_complete: self.parts == 0 }
    }
}
