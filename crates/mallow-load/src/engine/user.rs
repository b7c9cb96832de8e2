//! One virtual user, who executes a flow repeatedly.
//!
//! Each pass starts with an empty jar and without values. A pass ends early if a response lacks a value that later
//! requests need, or if there was no response; then the next request is the first one again. If a run ends in the
//! middle of a pass, the next run continues it, so that a server that ends a session with the last request never has
//! more open sessions than there are users.

use super::jar::Jar;
use super::prepared::{PreparedFlow, Template};
use crate::flow::{Flow, ResponseParts, Step, Take};
use bytes::Bytes;
use hyper::header::{COOKIE, HeaderValue, SET_COOKIE};
use std::sync::Arc;
use std::time::SystemTime;

/// The position of a user in the flow.
#[derive(Debug)]
pub(crate) struct User {
    number: u32,
    pass: u64,
    step: usize,
    values: Vec<Option<String>>,
    jar: Jar,
    /// The path of the current request.
    path: String,
}

impl User {
    /// Creates the user of a worker. Workers are numbered from 0.
    pub(crate) fn new(worker: u32) -> User {
        User {
            number: worker + 1,
            pass: 0,
            step: 0,
            values: Vec::new(),
            jar: Jar::default(),
            path: String::new(),
        }
    }

    fn current<'a>(&self, flow: &'a Flow) -> &'a Step {
        &flow.steps[self.step % flow.steps.len()]
    }

    /// Returns which parts of the next response have to be kept.
    pub(crate) fn wants(&self, prepared: &PreparedFlow) -> ResponseParts {
        let wants_body = self.current(&prepared.flow).takes.iter().any(Take::is_of_body);
        ResponseParts { wants_body, ..ResponseParts::default() }
    }

    /// Returns the next request. The error is the name of the failure, if an extracted value is not allowed in its place.
    pub(crate) fn request(&mut self, prepared: &PreparedFlow) -> Result<Template, Arc<str>> {
        if self.step == 0 {
            self.begin(&prepared.flow);
        }
        let step = self.current(&prepared.flow);
        let template = self.filled(step, prepared);
        template.ok_or_else(|| {
            self.step = 0;
            Arc::clone(&step.unsendable)
        })
    }

    fn begin(&mut self, flow: &Flow) {
        self.pass += 1;
        self.jar.clear();
        self.values = vec![None; flow.values];
        // In the order of `GIVEN`.
        for (value, given) in self.values.iter_mut().zip([u64::from(self.number), self.pass]) {
            *value = Some(given.to_string());
        }
    }

    fn filled(&mut self, step: &Step, prepared: &PreparedFlow) -> Option<Template> {
        self.path = step.path.filled(&self.values)?;
        let mut headers = prepared.headers.clone();
        for (name, text) in &step.headers {
            headers.insert(name, HeaderValue::from_str(&text.filled(&self.values)?).ok()?);
        }
        let is_tls = prepared.scheme == "https";
        if let Some(cookies) = self.jar.header(&self.path, is_tls, SystemTime::now()) {
            // Append to a `Cookie` header that was set by hand, since a request has only one (RFC 6265, section 5.4).
            let cookies = match headers.get(COOKIE).and_then(|given| given.to_str().ok()) {
                Some(given) => format!("{given}; {cookies}"),
                None => cookies,
            };
            headers.insert(COOKIE, HeaderValue::from_str(&cookies).ok()?);
        }
        let body = Bytes::from(step.body.filled(&self.values)?);
        let uri = prepared.uri(&self.path)?;
        Some(Template::new(step.method.clone(), uri, headers, body))
    }

    /// Handles a response. The error is the name of the failure if it lacks a value, unless its status already is a failure.
    pub(crate) fn answered(
        &mut self,
        prepared: &PreparedFlow,
        status: u16,
        answer: &ResponseParts,
    ) -> Result<(), Arc<str>> {
        let step = self.current(&prepared.flow);
        let mut fresh = Jar::default();
        let now = SystemTime::now();
        for header in answer.headers.get_all(SET_COOKIE).iter().filter_map(|header| header.to_str().ok()) {
            self.jar.set(header, &self.path, now);
            fresh.set(header, &self.path, now);
        }
        for take in &step.takes {
            match take.of(answer, |name| fresh.value(name)) {
                Some(value) => self.values[take.place] = Some(value),
                None => {
                    self.step = 0;
                    return if status < 400 { Err(Arc::clone(&take.missing)) } else { Ok(()) };
                }
            }
        }
        self.step = (self.step + 1) % prepared.flow.steps.len();
        Ok(())
    }

    /// Handles a missing response.
    pub(crate) fn failed(&mut self) {
        self.step = 0;
    }
}
