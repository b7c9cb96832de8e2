//! The destination of a command's result: stdout, or a file that is created when there is something to write.

use crate::{output, pager, sources, terminal};
use mallow_query::Failure;
use mallow_text::Style;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;

/// A file to create.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NewFile {
    pub(crate) path: PathBuf,
    pub(crate) force: bool,
}

impl NewFile {
    /// Returns whether it is stdout: `-`, as in all commands.
    pub(crate) fn is_stdout(&self) -> bool {
        self.path.as_os_str() == mallow_files::STREAM
    }
}

/// `None` for stdout, named (`-`) or not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Destination(Option<NewFile>);

impl Destination {
    /// Returns the destination for a file name.
    pub(crate) fn of(path: Option<PathBuf>, force: bool) -> Destination {
        Destination(path.map(|path| NewFile { path, force }).filter(|file| !file.is_stdout()))
    }

    /// Returns the file; `None` for stdout.
    pub(crate) fn file(&self) -> Option<&NewFile> {
        self.0.as_ref()
    }

    /// Returns the text style of the destination.
    pub(crate) fn style(&self) -> Style {
        match self.0 {
            Some(_) => terminal::style_of_file(),
            None => terminal::style(&io::stdout()),
        }
    }

    /// Writes a page; on a terminal through a pager.
    pub(crate) fn page(&self, page: &str) -> Result<(), Failure> {
        match self.0 {
            Some(_) => self.text(page),
            None => pager::show(&sources::linked(page)),
        }
    }

    /// Writes text unchanged.
    pub(crate) fn text(&self, text: &str) -> Result<(), Failure> {
        self.write(|out| out.write_all(text.as_bytes()))
    }

    /// Writes a document in one line.
    pub(crate) fn json(&self, document: &impl Serialize) -> Result<(), Failure> {
        self.write(|out| {
            serde_json::to_writer(&mut *out, document)?;
            out.write_all(b"\n")
        })
    }

    /// Writes a document as lines: first everything except its lists of objects, then each element of these, under its list's name. The longest list
    /// comes apart, one by one, because it need not fit into memory.
    pub(crate) fn ndjson<T: Serialize>(
        &self,
        document: &impl Serialize,
        longest: &str,
        elements: impl Iterator<Item = T>,
    ) -> Result<(), Failure> {
        let mut document = serde_json::to_value(document)?;
        let is_long = |value: &Value| {
            value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_object))
        };
        let mut elements = elements.peekable();
        let mut lists = Vec::new();
        if let Some(keys) = document.as_object_mut() {
            let long: Vec<String> =
                keys.iter().filter(|(_, value)| is_long(value)).map(|(key, _)| key.clone()).collect();
            lists.extend(long.into_iter().filter_map(|key| keys.remove_entry(&key)));
            if elements.peek().is_some() {
                keys.remove(longest);
            }
        }
        self.write(|out| {
            writeln!(out, "{document}")?;
            for (key, list) in &lists {
                for element in list.as_array().into_iter().flatten() {
                    writeln!(out, "{}", json!({ key.as_str(): element }))?;
                }
            }
            for element in elements {
                serde_json::to_writer(&mut *out, &BTreeMap::from([(longest, element)]))?;
                writeln!(out)?;
            }
            Ok(())
        })
    }

    /// Writes an indented document.
    pub(crate) fn pretty_json(&self, document: &impl Serialize) -> Result<(), Failure> {
        self.write(|out| {
            serde_json::to_writer_pretty(&mut *out, document)?;
            out.write_all(b"\n")
        })
    }

    /// Calls `write` with the destination.
    pub(crate) fn write(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Failure> {
        let Some(new) = &self.0 else { return output::to_stdout(write) };
        let mut out = BufWriter::new(output::create(&new.path, new.force)?);
        write(&mut out).and_then(|()| out.flush()).map_err(|error| Failure::writing(&new.path, &error))
    }
}
