//! The destinations of a check's result.

use super::checkout::Checkout;
use super::ci_environment::CiEnvironment;
use super::request::{Check, CheckForm};
use crate::output;
use mallow_gate::result::CheckResult;
use mallow_json::check::ReportFile;
use mallow_query::Failure;
use mallow_text::Style;
use mallow_text::check::text::Page;
use mallow_text::check::{annotations, junit, nio};
use std::io::Write;
use std::path::Path;

/// A result and its destinations.
pub(crate) struct Outputs<'a> {
    pub(crate) check: &'a Check,
    pub(crate) result: &'a CheckResult,
    pub(crate) ci_environment: &'a CiEnvironment,
}

impl Outputs<'_> {
    /// Writes everything that was requested. `folder` is the suite's.
    pub(crate) fn write(&self, folder: &Path) -> Result<(), Failure> {
        let shown = &self.check.shown;
        let page = Page {
            result: self.result,
            limit: shown.limit,
            allow_improvement: self.check.baselines.allow_improvement,
        };
        self.write_result(&page)?;
        if let Some(path) = &shown.junit {
            let name = folder.file_name().map_or("mallow".into(), |name| name.to_string_lossy());
            write(path, &junit::document(&page, &name)?)?;
        }
        if let Some(path) = &shown.sarif {
            let checkout = Checkout::new(self.ci_environment.checkout.as_deref(), folder);
            let document = mallow_json::check::sarif(self.result, page.allow_improvement, &|file| {
                checkout.relative(file)
            });
            write(path, &(serde_json::to_string_pretty(&document)? + "\n"))?;
        }
        if let Some(path) = &shown.markdown {
            write(path, &page.markdown())?;
        }
        if let Some(path) = &self.ci_environment.step_summary {
            append(path, &page.markdown())?;
        }
        if shown.annotations || self.ci_environment.github_actions {
            let checkout = Checkout::new(self.ci_environment.checkout.as_deref(), folder);
            let commands =
                annotations::commands(self.result, page.allow_improvement, &|file| checkout.relative(file));
            // GitHub also reads them from stderr; stdout may be a document.
            output::tell(&commands);
        }
        Ok(())
    }

    fn write_result(&self, page: &Page<'_>) -> Result<(), Failure> {
        let shown = &self.check.shown;
        let style = match shown.output {
            Some(_) => Style::PLAIN,
            None => crate::terminal::style(&std::io::stdout()),
        };
        let text = match shown.form {
            CheckForm::Text => page.text(style),
            CheckForm::Json => serde_json::to_string_pretty(&ReportFile::from(self.result))? + "\n",
            CheckForm::Markdown => page.markdown(),
            CheckForm::Nio => {
                output::tell(&nio::verdicts(self.result));
                match &shown.output {
                    // They are on stdout already.
                    None => return Ok(()),
                    Some(_) => self.result.tests.iter().map(nio::test).collect(),
                }
            }
        };
        match &shown.output {
            Some(path) => write(path, &text),
            None => output::to_stdout(|out| out.write_all(text.as_bytes())),
        }
    }
}

fn write(path: &Path, text: &str) -> Result<(), Failure> {
    if path.as_os_str() == mallow_files::STREAM {
        return output::to_stdout(|out| out.write_all(text.as_bytes()));
    }
    mallow_files::replace(path, text.as_bytes()).map_err(|error| Failure::writing(path, &error))
}

fn append(path: &Path, text: &str) -> Result<(), Failure> {
    mallow_files::append(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| Failure::writing(path, &error))
}
