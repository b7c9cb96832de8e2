//! `mallow report`: a trace as tables or JSON.

use crate::failure::Failure;
use crate::json::ReportJson;
use crate::request::{Booking, Form, Report, ReportView};
use crate::text::{self, Style};
use crate::{exit_code, open, output};
use mallow_formats::Imported;
use mallow_formats::native::ReallocBooking;
use mallow_view::{Measure, Shown, Sites};

/// Shows a trace.
pub(crate) fn run(report: &Report) -> Result<u8, Failure> {
    let booking = match report.booking {
        Booking::Own => ReallocBooking::OwnSite,
        Booking::Origin => ReallocBooking::Origin,
    };
    let imported = open::profile(&report.file, booking)?;
    output::warn(&imported.warnings);
    match report.form {
        Form::Text => {
            let style = Style::of(&std::io::stdout());
            let text = text::report::report(&imported.profile, &report.view, style);
            output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        }
        Form::Json => json(&imported, &report.view)?,
    }
    Ok(exit_code::FINE)
}

fn json(imported: &Imported, view: &ReportView) -> Result<(), Failure> {
    let mut sites = Sites::of(&imported.profile, Shown::All, &view.filter);
    sites.sort(view.sort.unwrap_or(Measure::Bytes));
    let limit = view.limit.unwrap_or(usize::MAX);
    let filtered = !view.filter.is_empty();
    let document =
        ReportJson::of(&imported.profile, &sites, limit, filtered, imported.complete, &imported.warnings);
    output::to_stdout(|out| {
        serde_json::to_writer(&mut *out, &document)?;
        out.write_all(b"\n")
    })
}
