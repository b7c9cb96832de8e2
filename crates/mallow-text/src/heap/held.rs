//! The objects that grew between two snapshots, by their holders.

use super::object::path;
use crate::{Style, cut_end, cut_start, grouped, printable};
use mallow_base::{Bytes, Count};
use mallow_view::heap::HeldRow;

/// Returns a row for each class with its line, and then why an object of the first class is alive.
pub fn held(rows: &[HeldRow], limit: usize, style: Style) -> Vec<String> {
    let head = style.dim(&format!("{:>10}{:>11}  ", "objects", "retained"));
    let mut lines = vec![format!("{head}{}", style.bold("what grew, and who holds it"))];
    if rows.is_empty() {
        lines.push(format!("{:23}no class has more objects and retains more", ""));
        return lines;
    }
    for HeldRow { growth, .. } in rows.iter().take(limit) {
        let holder = growth.holder.as_ref().map_or_else(|| "the roots".to_owned(), |class| printable(class));
        let text = format!("{}, held by {holder}", printable(&growth.class));
        lines.push(format!(
            "{:>10}{:>11}  {}",
            format!("+{}", Count(growth.more_objects())),
            format!("+{}", Bytes(growth.more_bytes())),
            cut_end(&text, style.name_width(23))
        ));
        if let Some((site, objects)) = &growth.site {
            let count = match *objects < growth.more_objects() {
                true => format!(" made {} of them", grouped(*objects)),
                false => String::new(),
            };
            let left = style.width.saturating_sub(25 + count.len());
            lines.push(format!("{:25}{}", "", style.dim(&(cut_start(&printable(site), left) + &count))));
        }
    }
    lines.extend(rows.first().into_iter().flat_map(|row| path(&row.example, style)));
    lines
}
