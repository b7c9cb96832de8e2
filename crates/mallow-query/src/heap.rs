//! A snapshot of a managed heap, and what is asked of it.

use crate::failure::Failure;
use crate::profile_file::refused;
use mallow_formats::Format;
use mallow_heapsnap::{
    Dominated, DominatorTree, Generation, Graph, Group, Growth, HeapDiff, HeapGrowth, ObjectId, Paths,
    Snapshot, Totals,
};
use mallow_view::Origin;
use mallow_view::heap::{
    self, ClassReport, GenerationRow, Generations, HeapLimit, HeapOutcome, HeapReport, HeldRow,
    HistogramReport, ManagedMemory, ObjectReport, Order,
};
use std::cell::OnceCell;
use std::path::{Path, PathBuf};

/// A snapshot's objects: which there are and when they were made, and nothing of who holds them. It is read in half the time of a [`HeapFile`].
#[derive(Debug)]
pub struct HeapObjects {
    path: PathBuf,
    format: Format,
    snapshot: Snapshot,
}

/// A snapshot with what follows from it.
#[derive(Debug)]
pub struct HeapFile {
    objects: HeapObjects,
    /// Built on demand: a comparison needs none.
    tree: OnceCell<DominatorTree>,
}

/// The classes of a series of snapshots, in the order of the files; warnings are handed to `warn`.
///
/// # Errors
/// One of them cannot be read, or is no snapshot.
pub fn growth(paths: &[PathBuf], mut warn: impl FnMut(&Path, &[String])) -> Result<HeapGrowth, Failure> {
    let mut growth = Growth::default();
    for path in paths {
        let (_, histogram) = mallow_formats::open_histogram(path).map_err(|error| refused(path, &error))?;
        warn(path, &histogram.warnings);
        growth.add(&histogram);
    }
    Ok(growth.finish())
}

/// Returns the histogram of a heap's classes; the file is parsed only as far as needed.
///
/// # Errors
/// It cannot be read, or is no snapshot of a heap.
pub fn histogram(path: &Path, order: Order) -> Result<HistogramReport, Failure> {
    let (format, histogram) = mallow_formats::open_histogram(path).map_err(|error| refused(path, &error))?;
    Ok(heap::histogram_report(&path.display().to_string(), origin(format), &histogram, order))
}

fn origin(format: Format) -> Origin {
    Origin { word: format.word(), name: format.name(), is_trace: false }
}

impl HeapObjects {
    /// Reads a file's objects.
    ///
    /// # Errors
    /// It cannot be read, or is no snapshot of a heap.
    pub fn open(path: &Path) -> Result<HeapObjects, Failure> {
        let (format, snapshot) = mallow_formats::open_objects(path).map_err(|error| refused(path, &error))?;
        Ok(HeapObjects { path: path.to_owned(), format, snapshot })
    }

    /// Returns warnings about the file, a sentence each.
    pub fn warnings(&self) -> &[String] {
        &self.snapshot.warnings
    }

    /// Returns how many objects of which age there are, without retained sizes.
    pub fn generations(&self) -> Generations {
        let rows = mallow_heapsnap::generation_sums(&self.snapshot.graph);
        let row =
            |of: Group<Option<Generation>>| GenerationRow { generation: of.key.map(|at| at.0), sum: of.sum };
        Generations { rows: rows.into_iter().map(row).collect(), other_lines: self.snapshot.other_lines }
    }

    /// Returns what changed from this snapshot to a later one; with a third, only objects that are still there count
    /// as new.
    ///
    /// # Errors
    /// They are of different runtimes.
    pub fn diff(&self, after: &HeapObjects, later: Option<&HeapObjects>) -> Result<HeapDiff, Failure> {
        for other in [Some(after), later].into_iter().flatten() {
            self.is_comparable(other)?;
        }
        Ok(mallow_heapsnap::diff(&self.snapshot, &after.snapshot, later.map(|later| &later.snapshot)))
    }

    fn is_comparable(&self, other: &HeapObjects) -> Result<(), Failure> {
        if other.snapshot.graph.runtime() == self.snapshot.graph.runtime() {
            return Ok(());
        }
        Err(Failure::new(format!(
            "{} is a {} and {} is a {}: only snapshots of one process can be compared.",
            self.path.display(),
            self.format,
            other.path.display(),
            other.format
        )))
    }
}

impl HeapFile {
    /// Reads a file.
    ///
    /// # Errors
    /// It cannot be read, or is no snapshot of a heap.
    pub fn open(path: &Path) -> Result<HeapFile, Failure> {
        let (format, snapshot) =
            mallow_formats::open_snapshot(path).map_err(|error| refused(path, &error))?;
        let objects = HeapObjects { path: path.to_owned(), format, snapshot };
        Ok(HeapFile { objects, tree: OnceCell::new() })
    }

    /// Its objects, without who holds them.
    pub fn objects(&self) -> &HeapObjects {
        &self.objects
    }

    /// The page of the whole heap.
    pub fn report(&self, order: Order) -> HeapReport {
        let totals = Totals::new(&self.objects.snapshot.graph, self.tree());
        let file = self.objects.path.display().to_string();
        heap::heap_report(
            &file,
            origin(self.objects.format),
            &self.objects.snapshot,
            self.tree(),
            &totals,
            order,
        )
    }

    /// Returns the page of an object, by its address (`0x7f…`) or its runtime's number (`@123`).
    ///
    /// # Errors
    /// There is no such object.
    pub fn object(&self, typed: &str) -> Result<ObjectReport, Failure> {
        let object = self.find(typed)?;
        Ok(heap::object_report(&self.objects.snapshot, self.tree(), &Paths::new(self.graph()), object))
    }

    /// The page of the classes of a name.
    ///
    /// # Errors
    /// There is none.
    pub fn class(&self, name: &str) -> Result<ClassReport, Failure> {
        let graph = self.graph();
        heap::class_report(&self.objects.snapshot, self.tree(), &Paths::new(graph), name).ok_or_else(|| {
            let file = self.objects.path.display();
            Failure::new(format!(
                "{file} has no object of a class {name}; mallow heap {file} lists the classes."
            ))
        })
    }

    /// Retained sizes as stacks of classes, outermost first.
    pub fn stacks(&self) -> Vec<(String, u64)> {
        heap::retained_stacks(self.graph(), self.tree())
    }

    /// Returns what grew from this snapshot to a later one, by the holding class.
    ///
    /// # Errors
    /// They are of different runtimes, or one of them has no roots.
    pub fn held(&self, after: &HeapFile) -> Result<Vec<HeldRow>, Failure> {
        self.objects.is_comparable(&after.objects)?;
        if let Some(file) = [self, after].iter().find(|file| file.objects.snapshot.is_partial) {
            return Err(Failure::new(format!(
                "{} has no roots, so it does not show which objects hold which.",
                file.objects.path.display()
            )));
        }
        Ok(heap::held_rows(self.dominated(), after.dominated()))
    }

    /// Returns the sum of its objects, and how much of that is in blocks of `malloc`.
    pub fn managed(&self) -> ManagedMemory {
        let graph = self.graph();
        let bytes = graph.objects().fold(0u64, |sum, object| sum.saturating_add(graph.size_bytes(object)));
        let malloc_bytes = self.objects.snapshot.slot_bytes.map_or(0, |slots| bytes.saturating_sub(slots));
        ManagedMemory {
            objects: graph.len() as u64,
            bytes,
            is_partial: !self.objects.snapshot.is_whole(),
            malloc_bytes,
        }
    }

    /// Compares the heap with limits.
    pub fn judge(&self, limits: &[HeapLimit]) -> Vec<HeapOutcome> {
        heap::judge(&self.objects.snapshot, self.tree(), limits)
    }

    fn tree(&self) -> &DominatorTree {
        self.tree.get_or_init(|| DominatorTree::new(self.graph()))
    }

    fn dominated(&self) -> Dominated<'_> {
        Dominated { snapshot: &self.objects.snapshot, tree: self.tree() }
    }

    fn graph(&self) -> &Graph {
        &self.objects.snapshot.graph
    }

    fn find(&self, typed: &str) -> Result<ObjectId, Failure> {
        let digits = typed.trim_start_matches('@');
        let id = match digits.strip_prefix("0x") {
            Some(hex) => u64::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let id = id.map_err(|_| {
            Failure::new(format!(
                "{typed} is no object; write its address as 0x7f12…, or its number as @123."
            ))
        })?;
        let file = self.objects.path.display();
        self.graph().find(id).ok_or_else(|| Failure::new(format!("{file} has no object {typed}.")))
    }
}
