//! The differences between snapshots of a heap.

use super::row::amount;
use crate::{Style, cut_end, cut_start, grouped, plural, printable, wrapped};
use mallow_base::{Bytes, Count};
use mallow_view::heap::{HeapDiff, HeapGrowth, HeldRow, Identity, NewObjects};

/// What is compared.
pub struct Compared<'a> {
    /// The names of the files: two, or three.
    pub files: &'a [String],
    /// The differences.
    pub diff: &'a HeapDiff,
    /// What holds the objects that grew, if requested.
    pub held: Option<&'a [HeldRow]>,
}

/// Returns the report of a comparison, with `rows` of each table.
pub fn diff(compared: &Compared<'_>, rows: usize, style: Style) -> String {
    let diff = compared.diff;
    let width = style.name_width(40);
    let mut out: Vec<String> = [("before", diff.before), ("after", diff.after)]
        .iter()
        .zip(compared.files)
        .map(|((word, sum), file)| {
            format!("{word:<7} {}: {}", cut_start(&printable(file), width), amount(sum))
        })
        .collect();
    if let Some(later) = compared.files.get(2) {
        out.push(format!("later   {}", cut_start(&printable(later), width)));
    }
    if diff.identity != Identity::Classes {
        out.push(format!("gone    {}", amount(&diff.gone)));
        let still = if compared.files.len() > 2 { ", still there later" } else { "" };
        out.push(format!("new     {}{still}", amount(&diff.new_sum)));
        out.extend(new(compared, rows, style));
        out.extend(grown(diff, rows, style));
    }
    out.extend(classes(diff, rows, style));
    out.extend(compared.held.into_iter().flat_map(|held| {
        let lines = super::held(held, rows, style);
        std::iter::once(String::new()).chain(lines)
    }));
    out.push(String::new());
    out.extend(notes(diff).iter().flat_map(|text| note(text, style)));
    if compared.held.is_none() {
        let words: Vec<String> = compared.files.iter().map(|file| crate::shell_word(file)).collect();
        out.extend([String::new(), format!("next: mallow heap diff {} --holders", words.join(" "))]);
    }
    out.join("\n") + "\n"
}

fn new(compared: &Compared<'_>, rows: usize, style: Style) -> Vec<String> {
    let new = &compared.diff.new;
    if new.is_empty() {
        return Vec::new();
    }
    let title = if compared.files.len() > 2 { "new and still there" } else { "new" };
    let head = format!("{:>10}{:>11}  ", "objects", "bytes");
    let mut lines =
        vec![String::new(), format!("{}{}", style.dim(&head), heading(title, rows, new.len(), style))];
    for of in new.iter().take(rows) {
        let name = cut_end(&printable(&of.class), style.name_width(23));
        lines.push(format!(
            "{:>10}{:>11}  {name}",
            Count(of.sum.objects).to_string(),
            Bytes(of.sum.bytes).to_string()
        ));
        lines.extend(made_at(of, style));
    }
    lines
}

/// Formats the line, and the range of its generations.
fn made_at(of: &NewObjects, style: Style) -> Option<String> {
    let generations = of.generations.map(|(first, last)| match first == last {
        true => format!(" in generation {first}"),
        false => format!(" in generations {first} to {last}"),
    });
    let generations = generations.unwrap_or_default();
    let site = of.site.as_ref()?;
    let site = cut_start(&printable(site), style.name_width(26 + generations.len()));
    Some(format!("{:25}{}", "", style.dim(&format!("{site}{generations}"))))
}

fn grown(diff: &HeapDiff, rows: usize, style: Style) -> Vec<String> {
    if diff.grown.is_empty() {
        return Vec::new();
    }
    let head = format!("{:>10}{:>11}  ", "objects", "grew by");
    let title = heading("in both, and larger", rows, diff.grown.len(), style);
    let mut lines = vec![String::new(), format!("{}{title}", style.dim(&head))];
    lines.extend(diff.grown.iter().take(rows).map(|grown| {
        let name = cut_end(&printable(&grown.class), style.name_width(23));
        format!("{:>10}{:>11}  {name}", Count(grown.objects).to_string(), Bytes(grown.bytes).to_string())
    }));
    lines
}

fn classes(diff: &HeapDiff, rows: usize, style: Style) -> Vec<String> {
    if diff.classes.is_empty() {
        return vec![String::new(), "no class has more or fewer objects, or other bytes".to_owned()];
    }
    let head = format!("{:>10}{:>10}{:>11}{:>11}  ", "objects", "change", "bytes", "change");
    let title = heading("classes", rows, diff.classes.len(), style);
    let mut lines = vec![String::new(), format!("{}{title}", style.dim(&head))];
    lines.extend(diff.classes.iter().take(rows).map(|class| {
        let (before, after) = (class.before, class.after);
        format!(
            "{:>10}{:>10}{:>11}{:>11}  {}",
            Count(after.objects).to_string(),
            change(before.objects, after.objects, |value| Count(value).to_string()),
            Bytes(after.bytes).to_string(),
            change(before.bytes, after.bytes, |value| Bytes(value).to_string()),
            cut_end(&printable(&class.name), style.name_width(44))
        )
    }));
    lines
}

fn change(before: u64, after: u64, text: impl Fn(u64) -> String) -> String {
    match after.checked_sub(before) {
        Some(0) => "0".to_owned(),
        Some(more) => format!("+{}", text(more)),
        None => format!("-{}", text(before - after)),
    }
}

fn notes(diff: &HeapDiff) -> Vec<String> {
    let how = match diff.identity {
        Identity::Number => "objects are identified by the numbers that V8 assigns, which are never reused",
        Identity::AddressAndGeneration => {
            "an object is the same in both if its address, its class and its generation are"
        }
        Identity::Address => {
            "nothing tells when an object was made, so it is taken for the same if its address and its class are: new objects may lie \
             where old ones lay, and there are more of them than are told here"
        }
        Identity::Classes => "a JVM moves its objects, so only classes can be compared",
    };
    let mut notes = vec![how.to_owned()];
    if diff.moved > 0 {
        notes.push(format!(
            "{} of the new objects were made before the first dump was: they were moved by a compaction, or that dump was cut off",
            grouped(diff.moved)
        ));
    }
    let is_same_process = diff.gone.objects < diff.before.objects;
    if diff.identity != Identity::Classes && diff.before.objects > 0 && !is_same_process {
        notes.push("no object of the first is in the second: are they snapshots of one process?".to_owned());
    }
    if !diff.is_complete {
        notes.push(PARTS.to_owned());
    }
    notes
}

/// The note if not every file is a whole heap.
const PARTS: &str = "not each file holds a whole heap: what is missing from an earlier one is taken for new here, and what is \
                     missing from a later one for gone";

fn note(text: &str, style: Style) -> Vec<String> {
    let end = if text.ends_with('?') { "" } else { "." };
    wrapped(&format!("note: {text}{end}"), style.width)
}

fn heading(title: &str, rows: usize, all: usize, style: Style) -> String {
    style.bold(&if all > rows {
        format!("{title}, {rows} of {}", grouped(all as u64))
    } else {
        title.to_owned()
    })
}

/// Returns how classes grew over a series of snapshots; `rows` of them.
pub fn growth(files: usize, growth: &HeapGrowth, rows: usize, style: Style) -> String {
    let classes = &growth.classes;
    let notes = if growth.is_complete { Vec::new() } else { note(PARTS, style) };
    let steady = classes.iter().filter(|class| class.grows_in_each()).count();
    let mut out = vec![format!(
        "{}: {} with more objects in each than in the one before",
        plural(files as u64, "snapshot"),
        match steady {
            1 => "1 class".to_owned(),
            _ => format!("{} classes", grouped(steady as u64)),
        }
    )];
    let changed = || classes.iter().filter(|class| class.grows_in_each() || class.growth_bytes() > 0);
    if changed().next().is_none() {
        out.push("no class has more bytes in the last than in the first".to_owned());
        out.extend(notes);
        return out.join("\n") + "\n";
    }
    let head = format!("{:>11}  ", "grew by");
    let title = heading("classes, with their objects in each", rows, changed().count(), style);
    out.extend([String::new(), format!("{}{title}", style.dim(&head))]);
    for class in changed().take(rows) {
        let objects: Vec<String> = class.objects.iter().map(|count| Count(*count).to_string()).collect();
        let mark = if class.grows_in_each() { "  in each step" } else { "" };
        let name = cut_end(&printable(&class.name), style.name_width(29));
        out.push(format!("{:>11}  {name}{mark}", Bytes(class.growth_bytes()).to_string()));
        out.push(format!("{:15}{}", "", style.dim(&cut_end(&objects.join(" → "), style.name_width(16)))));
    }
    if !notes.is_empty() {
        out.push(String::new());
        out.extend(notes);
    }
    out.join("\n") + "\n"
}
