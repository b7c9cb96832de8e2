//! Rows about a managed heap: what lies in it, who retains it, and why an object is alive.

mod explain;
mod held;
mod histogram;
mod limits;
mod object;
mod report;
mod stacks;

pub use mallow_heapsnap::{
    ClassChange, ClassSeries, Grown, HeapDiff, HeapGrowth, HeldGrowth, Identity, NewObjects, ObjectId, Sum,
};

pub use explain::{Explanation, ManagedMemory, Moment, NativeRow, Part, PartRow, explain, native_rows};
pub use held::{HeldRow, held_rows};
pub use histogram::{HistogramReport, histogram_report};
pub use limits::{HeapLimit, HeapOutcome, LimitKind, judge};
pub use object::{ClassReport, FieldRow, ObjectReport, class_report, object_report};
pub use report::{
    GenerationRow, Generations, GroupRow, HeapReport, ObjectRow, Order, StringRow, heap_report, label,
};
pub use stacks::retained_stacks;
