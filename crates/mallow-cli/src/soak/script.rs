//! The variables of the script that this command is derived from, "Warp Memory leak test": HOST, PORT, DURATION,
//! WORKERS, TRIES, with its meanings and its defaults.

use crate::args::time;
use mallow_query::Failure;
pub(crate) use mallow_text::soak::warp::Settings as Script;
use std::time::Duration;

/// Reads the variables.
pub(crate) fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Script, Failure> {
    let set = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
    let number = |name: &str, most: u32, default: u32| match set(name) {
        None => Ok(default),
        Some(value) => match value.trim().parse::<u32>() {
            Ok(number) if (1..=most).contains(&number) => Ok(number),
            _ => Err(Failure::new(format!(
                "the variable {name} is `{value}`; a number from 1 to {most} was expected."
            ))),
        },
    };
    let duration = match set("DURATION") {
        None => Duration::from_secs(3),
        Some(value) => time(&value).ok().filter(|duration| !duration.is_zero()).ok_or_else(|| {
            Failure::new(format!("the variable DURATION is `{value}`; a time such as 3s was expected."))
        })?,
    };
    Ok(Script {
        host: set("HOST").unwrap_or_else(|| "127.0.0.1".to_owned()),
        port: number("PORT", 65_535, 3030)? as u16,
        duration,
        workers: number("WORKERS", 100_000, 100)?,
        tries: number("TRIES", 1_000_000, 10)?,
    })
}

/// Returns the URL that it loads.
pub(crate) fn url(script: &Script) -> String {
    let is_bare_ipv6 = script.host.contains(':') && !script.host.starts_with('[');
    match is_bare_ipv6 {
        true => format!("http://[{}]:{}/", script.host, script.port),
        false => format!("http://{}:{}/", script.host, script.port),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Script, String> {
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        super::of(variable).map_err(|failure| failure.sentence().to_owned())
    }

    #[test]
    fn defaults_are_the_scripts() {
        let script = Script {
            host: "127.0.0.1".into(),
            port: 3030,
            duration: Duration::from_secs(3),
            workers: 100,
            tries: 10,
        };
        assert_eq!(of(&[]), Ok(script.clone()));
        assert_eq!(url(&script), "http://127.0.0.1:3030/");
        let all =
            [("HOST", "::1"), ("PORT", "8080"), ("DURATION", "1m30s"), ("WORKERS", "1"), ("TRIES", "2")];
        let other = of(&all).map(|script| (url(&script), script.duration, script.workers, script.tries));
        assert_eq!(other, Ok(("http://[::1]:8080/".to_owned(), Duration::from_secs(90), 1, 2)));
    }

    #[test]
    fn nonsense_is_refused_by_name() {
        for (name, value) in [
            ("PORT", "http"),
            ("PORT", "70000"),
            ("WORKERS", "0"),
            ("TRIES", "-1"),
            ("DURATION", "soon"),
            ("DURATION", "0s"),
        ] {
            let sentence = of(&[(name, value)]).err().unwrap_or_default();
            assert!(sentence.contains(name) && sentence.contains(value), "{sentence}");
        }
    }
}
