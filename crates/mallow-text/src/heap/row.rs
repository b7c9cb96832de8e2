//! What the reports of a heap, an object and a class share.

use crate::{Style, cut_end, plural, printable};
use mallow_base::{Bytes, Percent};
use mallow_view::heap::{ObjectRow, Sum};

/// Columns before a name.
pub(super) const NAME_COLUMN: usize = 48;

/// Formats `0x7f…  retained  share  own  what`.
pub(super) fn object_line(row: &ObjectRow, whole: u64, style: Style) -> String {
    let retained = row.retained_bytes.map_or_else(|| "-".to_owned(), |bytes| Bytes(bytes).to_string());
    let share = row.retained_bytes.filter(|_| whole > 0).map(|part| Percent { part, whole }.to_string());
    let share = share.unwrap_or_default();
    format!(
        "{:>20}{retained:>10}{share:>7}{:>10}  {}",
        row.id,
        Bytes(row.bytes).to_string(),
        cut_end(&printable(&row.label), style.name_width(NAME_COLUMN + 1))
    )
}

/// Formats `4.67 MiB in 21,165 objects`.
pub(super) fn amount(sum: &Sum) -> String {
    format!("{} in {}", Bytes(sum.bytes), plural(sum.objects, "object"))
}
