//! `mallow report`: a profile as tables, trees or JSON.

use crate::failure::Failure;
use crate::json::ReportJson;
use crate::json_events::WithEvents;
use crate::report_events::{self, Source};
use crate::request::{Booking, Form, Report};
use crate::suppressions::Applied;
use crate::text::report::Subject;
use crate::text::{self, Style};
use crate::{exit_code, open, output};
use mallow_profile::ReallocBooking;

/// Shows a profile.
pub(crate) fn run(report: &Report) -> Result<u8, Failure> {
    let booking = match report.booking {
        Booking::Own => ReallocBooking::OwnSite,
        Booking::Origin => ReallocBooking::Origin,
    };
    let (format, mut imported) = open::profile_of_format(&report.file, booking)?;
    let applied = Applied::to(&mut imported.profile, &report.suppressions, &mut imported.warnings)?;
    output::warn(&imported.warnings);
    let source = Source { path: &report.file, format, profile: &imported.profile, booking };
    let leaks = report_events::leaks_of(source, report)?;
    let subject = Subject { profile: &imported.profile, format, applied: &applied, leaks: leaks.as_ref() };
    match report.form {
        Form::Text => {
            let style = Style::of(&std::io::stdout());
            let text = match report.events.is_asked() {
                true => report_events::text(source, report, style)?,
                false => {
                    text::report::report(&subject, &report.view, style)
                        + &report_events::tail(source, report, leaks.as_ref(), style)
                }
            };
            output::to_stdout(|out| out.write_all(text.as_bytes()))?;
        }
        Form::Json => {
            let events = report_events::json(source, report, leaks.as_ref())?;
            let document = ReportJson::of(&subject, &report.view, imported.complete, &imported.warnings);
            let document = WithEvents { report: document, events };
            output::to_stdout(|out| {
                serde_json::to_writer(&mut *out, &document)?;
                out.write_all(b"\n")
            })?;
        }
    }
    Ok(exit_code::FINE)
}
