//! Commands for each value of a parameter, in hyperfine's order: commands change fastest, then the first parameter, the last one slowest.

use mallow_query::Failure;

/// A parameter with its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) values: Vec<String>,
}

/// More commands than this are a typo.
const VALUES_MAX: usize = 100_000;

/// Returns the parameters of `-P` and `-L`.
pub(super) fn parameters(
    scan: &[String],
    step: Option<&str>,
    lists: &[String],
) -> Result<Vec<Parameter>, Failure> {
    let mut parameters: Vec<Parameter> = Vec::new();
    if let [name, min, max] = scan {
        parameters.push(Parameter { name: name.clone(), values: scanned(min, max, step.unwrap_or("1"))? });
    }
    for list in lists.chunks_exact(2) {
        if parameters.iter().any(|known| known.name == list[0]) {
            return Err(Failure::new(format!("the parameter {} is named twice.", list[0])));
        }
        parameters.push(Parameter { name: list[0].clone(), values: listed(&list[1]) });
    }
    Ok(parameters)
}

/// Splits values at commas; `\,` is a comma in a value.
fn listed(text: &str) -> Vec<String> {
    let mut values = vec![String::new()];
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        let last = values.len() - 1;
        match letter {
            '\\' if letters.peek() == Some(&',') => values[last].extend(letters.next()),
            ',' => values.push(String::new()),
            other => values[last].push(other),
        }
    }
    values
}

/// Parses a decimal number: digits, and how many of them follow the point.
fn decimal(text: &str) -> Result<(i128, u32), Failure> {
    let refuse = || Failure::new(format!("'{text}' is not a number such as 8 or 0.25."));
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    if text.len() > 30 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refuse());
    }
    let digits = format!("{whole}{fraction}").parse().map_err(|_| refuse())?;
    Ok((digits, fraction.len() as u32))
}

fn scanned(min: &str, max: &str, step: &str) -> Result<Vec<String>, Failure> {
    let all = [decimal(min)?, decimal(max)?, decimal(step)?];
    let places = all.iter().map(|number| number.1).max().unwrap_or(0);
    let [min, max, step] = all.map(|(digits, own)| digits * 10_i128.pow(places - own));
    if step <= 0 || max < min {
        return Err(Failure::new(
            "--parameter-scan needs a MIN that is not above MAX, and a step above 0.".to_owned(),
        ));
    }
    if (max - min) / step >= VALUES_MAX as i128 {
        return Err(Failure::new(format!("--parameter-scan makes more than {VALUES_MAX} commands.")));
    }
    let text = |value: i128| {
        let scale = 10_i128.pow(places);
        let sign = if value < 0 { "-" } else { "" };
        match places {
            0 => value.to_string(),
            _ => format!(
                "{sign}{}.{:0width$}",
                value.abs() / scale,
                value.abs() % scale,
                width = places as usize
            ),
        }
    };
    Ok((0..=(max - min) / step).map(|at| text(min + at * step)).collect())
}

/// Returns each combination of values; the first parameter changes fastest. Without parameters there is one empty combination.
pub(super) fn combinations(parameters: &[Parameter]) -> Vec<Vec<(String, String)>> {
    let mut all: Vec<Vec<(String, String)>> = vec![Vec::new()];
    for parameter in parameters {
        let of_value = |value: &String| {
            let with = |known: &Vec<(String, String)>| {
                let mut known = known.clone();
                known.push((parameter.name.clone(), value.clone()));
                known
            };
            all.iter().map(with).collect::<Vec<_>>()
        };
        all = parameter.values.iter().flat_map(of_value).collect();
    }
    all
}

/// Returns a text with `{NAME}` replaced by the values.
pub(super) fn filled(text: &str, values: &[(String, String)]) -> String {
    // In one pass, since a value may look like a parameter.
    let mut filled = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        let (before, from) = rest.split_at(at);
        filled.push_str(before);
        let found = values.iter().find(|(name, _)| {
            from[1..].strip_prefix(name.as_str()).is_some_and(|behind| behind.starts_with('}'))
        });
        match found {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &from[name.len() + 2..];
            }
            None => {
                filled.push('{');
                rest = &from[1..];
            }
        }
    }
    filled + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    #[test]
    fn a_scan_has_the_places_of_its_numbers() {
        let of = |line: &str, step| parameters(&words(line), step, &[]).unwrap()[0].values.join(" ");
        assert_eq!(of("n 1 4", None), "1 2 3 4");
        assert_eq!(of("n 0.3 0.7", Some("0.2")), "0.3 0.5 0.7");
        assert_eq!(of("n -1 1", Some("0.5")), "-1.0 -0.5 0.0 0.5 1.0");
        for (line, step) in [("n 4 1", None), ("n 1 2", Some("0")), ("n a 2", None), ("n 0 9999999", None)] {
            assert!(parameters(&words(line), step, &[]).is_err(), "{line}");
        }
    }

    #[test]
    fn lists_are_combined_as_hyperfine_does() {
        let lists = ["a", "x,y", "b", r"1,2\,3"].map(str::to_owned);
        let all = combinations(&parameters(&[], None, &lists).unwrap());
        let texts: Vec<String> = all.iter().map(|values| filled("{a} {b} {c}", values)).collect();
        assert_eq!(texts, ["x 1 {c}", "y 1 {c}", "x 2,3 {c}", "y 2,3 {c}"]);
        assert!(parameters(&[], None, &["a", "1", "a", "2"].map(str::to_owned)).is_err());
    }

    #[test]
    fn a_value_that_looks_like_a_parameter_stays_as_it_is() {
        let values = [("a".to_owned(), "{b}".to_owned()), ("b".to_owned(), "1".to_owned())];
        assert_eq!(filled("{a}{b}{", &values), "{b}1{");
    }
}
