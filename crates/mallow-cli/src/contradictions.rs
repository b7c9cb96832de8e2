//! Contradictory arguments that the parser cannot detect.

use crate::args::{DrawnAs, HeapForm, LowCommand, LowHeapCommand, ReportForm};
use mallow_query::Failure;
use std::path::PathBuf;

/// Refuses them.
pub(crate) fn refuse(command: &LowCommand) -> Result<(), Failure> {
    if files(command).into_iter().filter(|file| file.as_os_str() == mallow_files::STREAM).count() > 1 {
        return Err(Failure::new("- is stdin, which can be only one of the files; name the others."));
    }
    match meaningless(command) {
        Some((flag, format)) => Err(Failure::new(format!(
            "{flag} means nothing with --format {format}; leave one of the two away."
        ))),
        None => Ok(()),
    }
}

/// Returns the files of a command that reads several.
fn files(command: &LowCommand) -> Vec<&PathBuf> {
    match command {
        LowCommand::Diff(low) => low.before.iter().chain(&low.after).collect(),
        LowCommand::Flamegraph(low) => low.file.iter().chain(&low.other).collect(),
        LowCommand::Heap(low) => match &low.command {
            Some(LowHeapCommand::Diff(low)) => {
                [&low.before, &low.after].into_iter().chain(&low.later).collect()
            }
            Some(LowHeapCommand::Growth(low)) => low.files.iter().collect(),
            Some(LowHeapCommand::Explain(low)) => {
                let beside = low.smaps.iter().chain(&low.allocator).chain(&low.trace);
                std::iter::once(&low.dump).chain(&low.later).chain(beside).collect()
            }
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// Returns a flag, and the format that it has no effect on.
fn meaningless(command: &LowCommand) -> Option<(&'static str, &'static str)> {
    let of_flags =
        |flags: &[(bool, &'static str)]| flags.iter().find(|(is_typed, _)| *is_typed).map(|(_, flag)| *flag);
    let (flag, format) = match command {
        LowCommand::Report(low) if low.form.form() != ReportForm::Text => {
            (of_flags(&[(low.annotate.is_some(), "--annotate")]), "json")
        }
        LowCommand::Flamegraph(low) if low.form() == DrawnAs::Folded => {
            (of_flags(&[(low.unfold, "--unfold"), (low.title.is_some(), "--title")]), "folded")
        }
        LowCommand::Heap(low) if low.command.is_none() => {
            let low = &low.report;
            let of_one = [(low.object.is_some(), "--object"), (low.class.is_some(), "--class")];
            let beside = [(low.histogram, "--histogram"), (low.compat.is_some(), "--compat")];
            match low.form() {
                HeapForm::Text => return None,
                HeapForm::Json => (of_flags(&beside[1..]), "json"),
                HeapForm::Svg => (of_flags(&[of_one, beside].concat()), "svg"),
                HeapForm::Folded => (of_flags(&[of_one, beside].concat()), "folded"),
            }
        }
        _ => return None,
    };
    flag.map(|flag| (flag, format))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::LowArgs;
    use clap::Parser;

    fn contradiction_in(line: &str) -> Option<String> {
        let words = std::iter::once("mallow").chain(line.split(' '));
        let typed = LowArgs::try_parse_from(words).unwrap_or_else(|error| panic!("{error}"));
        refuse(&typed.command).err().map(|failure| failure.sentence().to_owned())
    }

    #[test]
    fn stdin_is_one_file() {
        for line in
            ["diff - -", "flamegraph - -", "heap diff - a -", "heap growth a - -", "heap explain - --smaps -"]
        {
            assert_eq!(
                contradiction_in(line).as_deref(),
                Some("- is stdin, which can be only one of the files; name the others.")
            );
        }
        assert_eq!(
            (contradiction_in("diff a -"), contradiction_in("heap diff - a"), contradiction_in("report -")),
            (None, None, None)
        );
    }

    #[test]
    fn a_form_has_its_flags() {
        for (line, flag, format) in [
            ("report f --annotate x -f json", "--annotate", "json"),
            ("flamegraph f -f folded --title T", "--title", "folded"),
            ("flamegraph f --format folded --unfold", "--unfold", "folded"),
            ("heap d -f svg --class C", "--class", "svg"),
            ("heap d -f folded --histogram", "--histogram", "folded"),
            ("heap d -f json --compat heapy", "--compat", "json"),
        ] {
            let sentence = format!("{flag} means nothing with --format {format}; leave one of the two away.");
            assert_eq!(contradiction_in(line), Some(sentence), "{line}");
        }
        for line in
            ["report f --annotate x -f text", "heap d --histogram -f json", "heap d --class C --format json"]
        {
            assert_eq!(contradiction_in(line), None, "{line}");
        }
    }
}
