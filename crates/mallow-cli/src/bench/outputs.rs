//! The files that a benchmark writes: completely or not at all.

use super::explain::Explained;
use crate::args::LowBench;
use crate::output;
use mallow_json::bench::BenchJson;
use mallow_query::Failure;
use mallow_text::bench::exports::{TableForm, csv, table};
use mallow_text::bench::{Page, junit};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Files that are known to be writable, so that a result is not lost at the end.
pub(super) struct Outputs(Vec<Place>);

struct Place {
    path: PathBuf,
    form: Form,
    /// `None` for stdout, and for anything that is not a regular file, such as a pipe.
    file: Option<NamedTempFile>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Json,
    Csv,
    Table(TableForm),
    Junit,
    Flamegraph,
    CpuFlamegraph,
}

impl Outputs {
    /// Creates a temporary file beside each destination.
    pub(super) fn prepare(low: &LowBench) -> Result<Outputs, Failure> {
        let wanted = [
            (&low.export_json, Form::Json),
            (&low.save, Form::Json),
            (&low.export_csv, Form::Csv),
            (&low.export_markdown, Form::Table(TableForm::Markdown)),
            (&low.export_asciidoc, Form::Table(TableForm::AsciiDoc)),
            (&low.export_orgmode, Form::Table(TableForm::OrgMode)),
            (&low.junit, Form::Junit),
            (&low.flamegraph, Form::Flamegraph),
        ];
        let named = wanted.into_iter().filter_map(|(path, form)| Some((path.as_ref()?, form)));
        let mut places = named.map(|(path, form)| Place::of(path, form)).collect::<Result<Vec<_>, _>>()?;
        // A stream has room for one image.
        let drawn = places.iter().find(|place| place.form == Form::Flamegraph && place.file.is_some());
        if let Some(beside) = drawn.map(|place| of_time(&place.path)) {
            places.push(Place::of(&beside, Form::CpuFlamegraph)?);
        }
        Ok(Outputs(places))
    }

    /// Writes all files.
    pub(super) fn write(
        &mut self,
        low: &LowBench,
        page: &Page<'_>,
        explained: Option<&Explained>,
    ) -> Result<(), Failure> {
        let session = page.session;
        for place in self.0.drain(..) {
            let text = match place.form {
                Form::Json => BenchJson::of(session, page.limits).text()?,
                Form::Csv => csv(session),
                Form::Table(form) => table(session, form, low.time_unit, low.reference.is_some(), low.sort),
                Form::Junit => junit(page)?,
                Form::Flamegraph => match explained {
                    Some(explained) => explained.flamegraph()?,
                    None => continue,
                },
                Form::CpuFlamegraph => match explained.map(Explained::cpu_flamegraph).transpose()? {
                    Some(Some(drawing)) => drawing,
                    // The reason is written where the difference would be.
                    _ => continue,
                },
            };
            place.write(&text)?;
        }
        Ok(())
    }
}

/// Returns `why.cpu.svg` for `why.svg`.
fn of_time(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{}.cpu.svg", name.strip_suffix(".svg").unwrap_or(&name)))
}

impl Place {
    fn of(path: &Path, form: Form) -> Result<Place, Failure> {
        let is_stream = path.as_os_str() == "-" || fs::metadata(path).is_ok_and(|found| !found.is_file());
        let failed = |error: std::io::Error| Failure::writing(path, &error);
        if fs::metadata(path).is_ok_and(|found| found.is_dir()) {
            return Err(failed(std::io::ErrorKind::IsADirectory.into()));
        }
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let made = || tempfile::Builder::new().prefix(".mallow-bench-").tempfile_in(folder).map_err(failed);
        let file = if is_stream { None } else { Some(made()?) };
        Ok(Place { path: path.to_owned(), form, file })
    }

    fn write(self, text: &str) -> Result<(), Failure> {
        let failed = |error: std::io::Error| Failure::writing(&self.path, &error);
        match self.file {
            Some(mut file) => {
                use std::os::unix::fs::PermissionsExt;
                file.write_all(text.as_bytes()).map_err(failed)?;
                // With the usual permissions, and not those of a temporary file, which only its owner can read.
                let mode = fs::metadata(&self.path).map_or(0o644, |found| found.permissions().mode());
                file.as_file().set_permissions(fs::Permissions::from_mode(mode)).map_err(failed)?;
                file.persist(&self.path).map(drop).map_err(|error| failed(error.error))
            }
            None if self.path.as_os_str() == "-" => output::to_stdout(|out| out.write_all(text.as_bytes())),
            None => {
                let opened = fs::OpenOptions::new().write(true).open(&self.path);
                opened.and_then(|mut file| file.write_all(text.as_bytes())).map_err(failed)
            }
        }
    }
}
