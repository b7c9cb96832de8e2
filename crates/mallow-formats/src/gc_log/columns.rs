//! Finds the columns by the header's names.

use super::{GcEvent, GcLogError, GcRow};

/// Names of the column of live slots: Ruby 2.2 and later, 2.1, 2.0.
const SLOTS_NAMES: [&str; 3] = ["heap_live_slots", "heap_live_slot", "heap_live_num"];

/// Names of the column of resident memory, the better ones first. The last two are a peak.
pub(super) const RESIDENT_NAMES: [&str; 5] = ["rss", "rss_bytes", "rss_kb", "ru_maxrss", "maxrss"];

/// Names of the column of requests; `access` is what the gem's Rack middleware counts.
const REQUESTS_NAMES: [&str; 3] = ["access", "requests", "request_count"];

/// The user's choice of columns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Choice {
    /// The column of resident memory.
    pub resident: Option<String>,
    /// Its unit.
    pub resident_unit: Option<ResidentUnit>,
    /// The column of requests.
    pub requests: Option<String>,
}

/// The unit of resident memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResidentUnit {
    /// As `getrusage` on macOS and most custom fields.
    Bytes,
    /// As `getrusage` on Linux.
    Kibibytes,
}

pub(super) struct Column {
    pub(super) name: String,
    index: usize,
}

pub(super) struct Columns {
    count: usize,
    event: Column,
    tick: Column,
    pub(super) slots: Column,
    collections: Option<Column>,
    major: Option<Column>,
    resident: Option<Column>,
    pub(super) requests: Option<Column>,
}

/// Returns whether a line names the columns that every such log has.
pub(crate) fn is_header(line: &str) -> bool {
    let names = fields(line);
    names.contains(&"type") && names.contains(&"tick")
}

impl Columns {
    pub(super) fn of_header(header: &str, choice: &Choice) -> Result<Columns, GcLogError> {
        let names = fields(header);
        let find = |name: &str| {
            let index = names.iter().position(|column| *column == name)?;
            Some(Column { name: name.to_owned(), index })
        };
        let first = |among: &[&str]| among.iter().find_map(|name| find(name));
        let chosen = |name: &Option<String>, among: &[&str]| match name {
            Some(name) => find(name).map(Some).ok_or_else(|| missing(name, hint_of(&names))),
            None => Ok(first(among)),
        };
        let (Some(event), Some(tick)) = (find("type"), find("tick")) else {
            return Err(GcLogError::NoHeader);
        };
        let slots = first(&SLOTS_NAMES).ok_or_else(|| {
            missing(SLOTS_NAMES[0], Some("trace with gc_stat: true, which is the default".to_owned()))
        })?;
        Ok(Columns {
            count: names.len(),
            event,
            tick,
            slots,
            collections: find("count"),
            major: find("major_by"),
            resident: chosen(&choice.resident, &RESIDENT_NAMES)?,
            requests: chosen(&choice.requests, &REQUESTS_NAMES)?,
        })
    }

    /// Parses a line's metrics; `None` if it is truncated.
    pub(super) fn row(&self, line: &str, number: u64) -> Result<Option<GcRow>, GcLogError> {
        let fields = fields(line);
        if fields.len() < self.count {
            return Ok(None);
        }
        let damaged = |column: &Column, expected| GcLogError::Damaged {
            line: number,
            column: column.name.clone(),
            expected,
        };
        let whole = |column: &Column| match fields[column.index].parse::<u64>() {
            Ok(metric) => Ok(metric),
            Err(_) => Err(damaged(column, "a whole number")),
        };
        let optional = |column: &Option<Column>| column.as_ref().map(whole).transpose();
        let tick: f64 = fields[self.tick.index].parse().map_err(|_| damaged(&self.tick, "a number"))?;
        if !tick.is_finite() {
            return Err(damaged(&self.tick, "a number"));
        }
        Ok(Some(GcRow {
            event: event(fields[self.event.index]),
            // Nil is written as 0, a reason by its name.
            is_major: self.major.as_ref().map(|column| fields[column.index] != "0"),
            tick,
            collections: optional(&self.collections)?,
            live_slots: whole(&self.slots)?,
            resident_bytes: optional(&self.resident)?,
            requests: optional(&self.requests)?,
        }))
    }

    /// Converts the rows' resident memory into bytes; returns the column and the unit.
    pub(super) fn finish_resident(
        &self,
        rows: &mut [GcRow],
        choice: &Choice,
    ) -> Option<(String, ResidentUnit, bool)> {
        let column = self.resident.as_ref()?;
        let largest = rows.iter().filter_map(|row| row.resident_bytes).max().unwrap_or(0);
        let unit = choice.resident_unit.unwrap_or(unit_of(&column.name, largest));
        if unit == ResidentUnit::Kibibytes {
            for row in rows {
                row.resident_bytes = row.resident_bytes.map(|metric| metric.saturating_mul(1024));
            }
        }
        // An unset custom field is 0; then it was not measured.
        (largest > 0).then(|| (column.name.clone(), unit, column.name.contains("maxrss")))
    }
}

/// Returns the unit by the name, or by what a process can have: 16 GiB in KiB are 16,777,216, which in bytes is less than any Ruby takes.
fn unit_of(name: &str, largest: u64) -> ResidentUnit {
    const SIXTEEN_GIB_IN_KIB: u64 = 16 << 20;
    match name {
        "rss_bytes" => ResidentUnit::Bytes,
        "rss_kb" => ResidentUnit::Kibibytes,
        _ if largest >= SIXTEEN_GIB_IN_KIB => ResidentUnit::Bytes,
        _ => ResidentUnit::Kibibytes,
    }
}

/// Splits a line, which always ends with a tab.
fn fields(line: &str) -> Vec<&str> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.strip_suffix('\t').unwrap_or(line).split('\t').map(str::trim).collect()
}

fn event(word: &str) -> GcEvent {
    match word {
        "start" => GcEvent::Start,
        "end_mark" => GcEvent::EndMark,
        "end_sweep" => GcEvent::EndSweep,
        _ => GcEvent::Other,
    }
}

fn missing(name: &str, hint: Option<String>) -> GcLogError {
    GcLogError::NoColumn { name: name.to_owned(), hint }
}

fn hint_of(names: &[&str]) -> Option<String> {
    Some(format!("there are {}", names.join(", ")))
}
