//! The cookies of one virtual user, who uses one server only.
//!
//! Source: RFC 6265, sections 5.1.1 (dates), 5.1.4 (paths), 5.2 (`Set-Cookie`) and 5.4 (`Cookie`). There is only one
//! host, so domains are ignored, and there are no third parties. A jar holds a fixed number of cookies.

use std::time::{Duration, SystemTime};

/// About as many as a browser keeps for one server; beyond that the oldest is evicted.
const COOKIES_MAX: usize = 180;
/// Longer than any browser accepts.
const COOKIE_BYTES_MAX: usize = 8192;

#[derive(Clone, Debug, PartialEq, Eq)]
struct Cookie {
    name: String,
    value: String,
    path: String,
    is_secure: bool,
    /// When it expires; `None` for as long as the jar exists.
    expires: Option<SystemTime>,
}

/// The cookies, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Jar {
    cookies: Vec<Cookie>,
}

impl Jar {
    /// Removes all cookies.
    pub(crate) fn clear(&mut self) {
        self.cookies.clear();
    }

    /// Stores the cookie of a `Set-Cookie` header in the response to a request for `path`.
    pub(crate) fn set(&mut self, header: &str, path: &str, now: SystemTime) {
        let Some(cookie) = Cookie::of(header, path, now) else { return };
        self.cookies.retain(|old| (&old.name, &old.path) != (&cookie.name, &cookie.path));
        if cookie.expires.is_none_or(|expires| expires > now) {
            if self.cookies.len() == COOKIES_MAX {
                self.cookies.remove(0);
            }
            self.cookies.push(cookie);
        }
    }

    /// Returns the `Cookie` header of a request for `path`, the longest paths first; `None` if no cookie matches.
    pub(crate) fn header(&self, path: &str, is_tls: bool, now: SystemTime) -> Option<String> {
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let mut sent: Vec<&Cookie> =
            self.cookies.iter().filter(|cookie| cookie.is_for(path, is_tls, now)).collect();
        sent.sort_by_key(|cookie| std::cmp::Reverse(cookie.path.len()));
        let pairs: Vec<String> =
            sent.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value)).collect();
        (!pairs.is_empty()).then(|| pairs.join("; "))
    }

    /// Returns the value of the newest cookie of this name.
    pub(crate) fn value(&self, name: &str) -> Option<String> {
        self.cookies.iter().rev().find(|cookie| cookie.name == name).map(|cookie| cookie.value.clone())
    }
}

impl Cookie {
    fn of(header: &str, path: &str, now: SystemTime) -> Option<Cookie> {
        if header.len() > COOKIE_BYTES_MAX {
            return None;
        }
        let mut parts = header.split(';');
        let (name, value) = parts.next()?.split_once('=')?;
        let (name, value) = (name.trim(), value.trim());
        let mut cookie = Cookie {
            name: name.to_owned(),
            value: value.to_owned(),
            path: default_path(path),
            is_secure: false,
            expires: None,
        };
        let mut age: Option<SystemTime> = None;
        for part in parts {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim();
            match key.trim().to_ascii_lowercase().as_str() {
                "path" if value.starts_with('/') => cookie.path = value.to_owned(),
                "secure" => cookie.is_secure = true,
                "expires" => cookie.expires = date(value).or(cookie.expires),
                "max-age" => match value.parse::<i64>() {
                    Ok(seconds) if seconds <= 0 => age = Some(SystemTime::UNIX_EPOCH),
                    // A date that is too late for the clock is ignored.
                    Ok(seconds) => age = now.checked_add(Duration::from_secs(seconds.unsigned_abs())),
                    Err(_) => {}
                },
                _ => {}
            }
        }
        cookie.expires = age.or(cookie.expires);
        (!name.is_empty()).then_some(cookie)
    }

    fn is_for(&self, path: &str, is_tls: bool, now: SystemTime) -> bool {
        let is_below = |rest: &str| rest.is_empty() || self.path.ends_with('/') || rest.starts_with('/');
        path.strip_prefix(self.path.as_str()).is_some_and(is_below)
            && (is_tls || !self.is_secure)
            && self.expires.is_none_or(|expires| expires > now)
    }
}

/// Returns the folder of a path.
fn default_path(path: &str) -> String {
    let path = path.split(['?', '#']).next().unwrap_or(path);
    match path.rfind('/') {
        Some(at) if at > 0 => path[..at].to_owned(),
        _ => "/".to_owned(),
    }
}

/// Parses `Wed, 21 Oct 2015 07:28:00 GMT`, and the other formats that browsers accept. A date before 1970 becomes the first second of 1970.
fn date(text: &str) -> Option<SystemTime> {
    const MONTHS: [&str; 12] =
        ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"];
    let (mut time, mut day, mut month, mut year) = (None, None, None, None);
    for word in text.split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == ':')) {
        let number = || word.parse::<i64>().ok();
        let lower = word.to_ascii_lowercase();
        if word.contains(':') {
            let parts: Option<Vec<i64>> = word.split(':').map(|part| part.parse().ok()).collect();
            time = parts.filter(|parts| parts.len() == 3 && parts[0] < 24 && parts[1] < 60 && parts[2] < 61);
        } else if let (Some(value), None) = (number().filter(|_| word.len() <= 2), day) {
            day = Some(value);
        } else if let Some(value) = number().filter(|value| (0..10_000).contains(value)) {
            // A year of two digits is in the last century or this one.
            year = Some(match value {
                0..=69 => value + 2000,
                70..=99 => value + 1900,
                year => year,
            });
        } else if let Some(at) = MONTHS.iter().position(|name| lower.starts_with(name)) {
            month = Some(at as i64 + 1);
        }
    }
    let (time, day, month, year) = (time?, day?, month?, year?);
    let seconds = days_since_1970(year, month, day) * 86_400 + time[0] * 3600 + time[1] * 60 + time[2];
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0)))
}

/// Converts a date of the Gregorian calendar, in which 400 years have 146,097 days. Years begin in March, so that the leap day is the last one.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_era = year.rem_euclid(400);
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    year.div_euclid(400) * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000)
    }

    fn jar(headers: &[&str]) -> Jar {
        let mut jar = Jar::default();
        headers.iter().for_each(|header| jar.set(header, "/app/login?x=/y", now()));
        jar
    }

    fn sent(headers: &[&str], path: &str) -> Option<String> {
        jar(headers).header(path, false, now())
    }

    #[test]
    fn a_cookie_comes_back_to_the_paths_that_it_is_for() {
        let cookie = |path: &str| sent(&["id=7; HttpOnly; SameSite=Lax"], path);
        assert_eq!(cookie("/app/account?a=1").as_deref(), Some("id=7"));
        assert_eq!(cookie("/app").as_deref(), Some("id=7"));
        assert_eq!((cookie("/application"), cookie("/")), (None, None));
        assert_eq!(sent(&["id=7; Path=/"], "/").as_deref(), Some("id=7"));
        assert_eq!(sent(&["id=7; path=/other"], "/app/a"), None);
        let two = ["a=1; Path=/", "b=2; Path=/app/x", "a=3; Path=/"];
        assert_eq!(
            sent(&two, "/app/x/y").as_deref(),
            Some("b=2; a=3"),
            "the longest path first, the last value alone"
        );
    }

    #[test]
    fn a_cookie_is_gone_when_its_time_is_over() {
        for over in [
            "id=; Max-Age=0",
            "id=x; max-age=-1",
            "id=x; Expires=Thu, 01 Jan 1970 00:00:00 GMT",
            "id=x; expires=Wed, 21-Oct-15 07:28:00 GMT",
        ] {
            assert_eq!(sent(&["id=7; Path=/app", over], "/app"), None, "{over}");
        }
        for lasting in [
            "id=7; Max-Age=60",
            "id=7; Expires=Wed, 21 Oct 2099 07:28:00 GMT",
            "id=7; Expires=never",
            "id=7; Max-Age=0x; Expires=junk",
        ] {
            assert_eq!(sent(&[lasting], "/app").as_deref(), Some("id=7"), "{lasting}");
        }
        let both = "id=7; Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT";
        assert_eq!(sent(&[both], "/app").as_deref(), Some("id=7"), "the age goes first");
        let later = now() + Duration::from_secs(61);
        assert_eq!(jar(&["id=7; Max-Age=60"]).header("/app", false, later), None);
    }

    #[test]
    fn a_secure_one_wants_tls_and_nonsense_is_no_cookie() {
        let secure = jar(&["id=7; Secure"]);
        assert_eq!(secure.header("/app", false, now()), None);
        assert_eq!(secure.header("/app", true, now()).as_deref(), Some("id=7"));
        for nonsense in ["", "id", "=7", "; Path=/"] {
            assert_eq!(sent(&[nonsense], "/app"), None, "{nonsense}");
        }
        assert_eq!(jar(&["a=1", "b=x=y"]).value("b").as_deref(), Some("x=y"));
        assert_eq!(jar(&[]).value("b"), None);
        let many: Vec<String> = (0..200).map(|at| format!("c{at}=1")).collect();
        let jar = jar(&many.iter().map(String::as_str).collect::<Vec<_>>());
        assert_eq!((jar.cookies.len(), jar.cookies[0].name.as_str()), (COOKIES_MAX, "c20"));
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        let seconds =
            |text| date(text).map(|date| date.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs());
        assert_eq!(seconds("Wed, 21 Oct 2015 07:28:00 GMT"), Some(1_445_412_480));
        assert_eq!(seconds("Sun Feb 29 23:59:59 2004"), Some(1_078_099_199));
        assert_eq!(seconds("Thursday, 01-Jan-70 00:00:01 GMT"), Some(1));
        assert_eq!(seconds("Thu, 01 Jan 1601 00:00:00 GMT"), Some(0));
        for none in ["", "tomorrow", "21 Oct 2015", "25:00:00 21 Oct 2015"] {
            assert_eq!(seconds(none), None, "{none}");
        }
    }
}
