//! Refusals: one value, and its form in each protocol.

use crate::proto::{http1, sni, ssh};
use ringfence_policy::{Destination, HostDecision, Origin};
use serde::Serialize;

/// What kind of refusal, which decides the status that a client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Status {
    /// The client sent something malformed or ambiguous.
    BadRequest,
    /// The policy does not allow it.
    Forbidden,
    /// The request names another host than the connection (RFC 9110 section 15.5.20).
    Misdirected,
    /// Too many in a short time.
    TooMany,
    /// The name does not resolve, the host does not answer, or its answer is malformed.
    BadGateway,
    /// The host did not answer in time.
    Timeout,
    /// A request of ours came back to us (RFC 5842 section 7.2).
    Loop,
}

impl Status {
    fn code(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Forbidden => 403,
            Self::Misdirected => 421,
            Self::TooMany => 429,
            Self::BadGateway => 502,
            Self::Timeout => 504,
            Self::Loop => 508,
        }
    }
}

/// Why a connection or a request goes no further.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Refusal {
    /// The kind.
    pub(crate) status: Status,
    /// A stable code.
    pub(crate) code: &'static str,
    /// Whom it was meant for.
    pub(crate) destination: String,
    /// Why, as a phrase.
    pub(crate) reason: String,
    /// The flag that would allow it.
    pub(crate) remedy: Option<String>,
    /// The rule that decided.
    pub(crate) rule: Option<Origin>,
}

#[derive(Serialize)]
struct Body<'a> {
    error: &'static str,
    code: &'a str,
    destination: &'a str,
    reason: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    rule: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    remedy: Option<&'a str>,
    advice: &'static str,
}

impl Refusal {
    /// A refusal that no rule is the reason of.
    pub(crate) fn new(
        status: Status,
        code: &'static str,
        destination: impl ToString,
        reason: impl ToString,
    ) -> Box<Self> {
        let (destination, reason) = (destination.to_string(), reason.to_string());
        Box::new(Self { status, code, destination, reason, remedy: None, rule: None })
    }

    /// The refusal that a decision is.
    pub(crate) fn denied(destination: &Destination, decision: &HostDecision) -> Box<Self> {
        Box::new(Self {
            status: Status::Forbidden,
            code: decision.code,
            destination: destination.to_string(),
            reason: decision.reason.clone(),
            remedy: decision.remedy.clone(),
            rule: Some(decision.origin.clone()),
        })
    }

    /// One line for people: what, why, and what to do.
    pub(crate) fn line(&self) -> String {
        let line = match &self.remedy {
            Some(remedy) => format!("ringfence: {} refused: {} (to allow it: {remedy})", self.destination, self.reason),
            None => format!("ringfence: {} refused: {}", self.destination, self.reason),
        };
        line.chars().map(|c| if c.is_ascii_graphic() || c == ' ' { c } else { '?' }).take(300).collect()
    }

    /// A whole HTTP response, after which the connection is closed. The reason phrase carries the line, because a client
    /// shows that of a refused CONNECT and no more.
    pub(crate) fn http(&self, method: &str) -> Vec<u8> {
        let advice = match self.status {
            Status::Forbidden if self.remedy.is_some() => {
                "Do not retry. Ask the user to allow the host if the task needs it."
            }
            Status::Forbidden | Status::BadRequest | Status::Misdirected | Status::Loop => "Do not retry.",
            Status::TooMany | Status::BadGateway | Status::Timeout => "The policy allows the host; it may be retried.",
        };
        let body = Body {
            error: "ringfence",
            code: self.code,
            destination: &self.destination,
            reason: &self.reason,
            rule: self.rule.as_ref().map(ToString::to_string),
            remedy: self.remedy.as_deref(),
            advice,
        };
        let mut body = serde_json::to_vec(&body).unwrap_or_default();
        body.push(b'\n');
        let length = u64::try_from(body.len()).unwrap_or(0);
        let mut fields = http1::Fields::default();
        fields.push("Content-Type", b"application/json");
        fields.push("X-Proxy-Error", format!("{}; {}", self.code, self.line()).as_bytes());
        fields.push("Cache-Control", b"no-store");
        fields.push("Connection", b"close");
        let response = http1::Response {
            version: http1::Version::Http11,
            status: self.status.code(),
            reason: self.line().into_bytes(),
            fields,
        };
        let mut out = Vec::new();
        response.write(http1::Framing::Length(length), &mut out);
        if method != "HEAD" {
            out.extend_from_slice(&body);
        }
        out
    }

    /// A fatal alert for a TLS client.
    pub(crate) fn tls() -> &'static [u8] {
        &sni::ACCESS_DENIED
    }

    /// A disconnect message for an SSH client.
    pub(crate) fn ssh(&self) -> Vec<u8> {
        ssh::disconnect(&self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_cannot_break_its_protocol() {
        let mut refusal =
            Refusal::new(Status::Forbidden, "no_rule", "evil.test:443\r\nX: y", "no rule\nallows \u{1b}[2Jit");
        refusal.remedy = Some("--allow-host evil.test".to_owned());
        let text = String::from_utf8(refusal.http("GET")).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert_eq!(head.lines().count(), 6);
        assert!(head.starts_with("HTTP/1.1 403 ringfence: evil.test:443??X: y refused: no rule?allows ?[2Jit (to allow it: --allow-host evil.test)\r\n"), "{head}");
        assert_eq!(body.lines().count(), 1);
        assert!(!refusal.http("HEAD").ends_with(b"}\n"));
    }
}
