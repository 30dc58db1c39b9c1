//! Under which names a server may be addressed, and from which page.
//!
//! A web page of another origin cannot read an aircraft's answers, unless its name is made to resolve to the aircraft's
//! address after it was loaded (DNS rebinding): then the browser takes both for one origin. The request still carries
//! the page's name in `Host` and in `Origin`, and is refused by it.

use std::net::{Ipv4Addr, Ipv6Addr};

use axum::http::uri::Authority;
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};

use crate::refusal::Refusal;

/// The longest name (RFC 1035, 2.3.4).
const NAME_MAX: usize = 253;
/// As much of what was found is repeated in a refusal.
const SHOWN_MAX: usize = 100;

/// A configured name that is none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    /// The text that was found.
    pub found: String,
}

impl NameError {
    /// What is accepted.
    pub const EXPECTED: &'static str = "a host name of letters, digits, hyphens and dots, without a scheme and a port, for example uav-3.lab.example";
}

impl std::fmt::Display for NameError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "found {:?}, expected {}", self.found, Self::EXPECTED)
    }
}

impl std::error::Error for NameError {}

/// The names under which a server may be addressed, besides every IP address, `localhost` and the machine's own.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts {
    /// In lower case, without a final dot.
    allowed: Vec<String>,
    /// Where an operator adds one.
    setting: &'static str,
}

impl Hosts {
    /// `setting` is what an operator has to change to add a name.
    ///
    /// # Errors
    /// The first name that is none.
    pub fn new<'a>(
        setting: &'static str,
        names: impl IntoIterator<Item = &'a String>,
    ) -> Result<Self, NameError> {
        let allowed = names.into_iter().map(|name| {
            let plain = plain(name);
            let letters =
                plain.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'));
            if plain.is_empty() || plain.len() > NAME_MAX || !letters {
                return Err(NameError { found: name.chars().take(SHOWN_MAX).collect() });
            }
            Ok(plain)
        });
        Ok(Self { allowed: allowed.collect::<Result<_, _>>()?, setting })
    }

    /// Whether a request may have come to this server.
    pub(crate) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), Refusal> {
        let mut hosts = headers.get_all(header::HOST).iter();
        let (host, second) = (hosts.next(), hosts.next());
        let (Some(host), None) = (host, second) else {
            let found = if second.is_some() { "several" } else { "none" };
            let message =
                format!("Host: found {found}, expected the name by which this machine was addressed");
            return Err(Refusal::new(StatusCode::BAD_REQUEST, "bad_request", message).closing());
        };
        self.named(host.to_str().ok().and_then(|host| host.parse().ok()), &shown(host))?;
        // In the form for proxies the path carries a name too, which precedes (RFC 9112, 3.2.2).
        if let Some(authority) = uri.authority() {
            self.named(Some(authority.clone()), authority.as_str())?;
        }
        for origin in headers.get_all(header::ORIGIN) {
            if !is_origin_of(origin, host) {
                let (found, host) = (shown(origin), shown(host));
                let message =
                    format!("Origin: found {found:?}, expected that of this server, http://{host}, or none");
                return Err(Refusal::new(StatusCode::FORBIDDEN, "forbidden", message).closing());
            }
        }
        Ok(())
    }

    fn named(&self, authority: Option<Authority>, shown: &str) -> Result<(), Refusal> {
        let machine = machine_names();
        let is_known = |authority: &Authority| {
            let host = plain(authority.host());
            let address = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
            !authority.as_str().contains('@')
                && (host.parse::<Ipv4Addr>().is_ok()
                    || address.is_some_and(|address| address.parse::<Ipv6Addr>().is_ok())
                    || host == "localhost"
                    || machine.contains(&host)
                    || self.allowed.contains(&host))
        };
        if authority.as_ref().is_some_and(is_known) {
            return Ok(());
        }
        let names: String = machine.iter().map(|name| format!("{name}, ")).collect();
        let setting = self.setting;
        let message = format!(
            "Host: found {shown:?}, expected an IP address, localhost, {names}or a name that is listed in {setting}"
        );
        Err(Refusal::new(StatusCode::MISDIRECTED_REQUEST, "misdirected", message).closing())
    }
}

/// The names of this machine: its own, and by multicast DNS. Read anew, because a network may give another.
#[must_use]
pub fn machine_names() -> Vec<String> {
    #[cfg(unix)]
    let own = rustix::system::uname().nodename().to_str().map(plain).unwrap_or_default();
    #[cfg(not(unix))]
    let own = std::env::var("COMPUTERNAME").map(|name| plain(&name)).unwrap_or_default();
    let short = own.split('.').next().unwrap_or_default().to_owned();
    if short.is_empty() || short.starts_with('(') {
        return vec![];
    }
    let local = format!("{short}.local");
    let mut names = vec![own, short, local];
    names.dedup();
    names
}

fn plain(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Whether a page of this origin was served under that host.
fn is_origin_of(origin: &HeaderValue, host: &HeaderValue) -> bool {
    let (Ok(origin), Ok(host)) = (origin.to_str(), host.to_str()) else { return false };
    // https: a proxy in front of us has the certificate.
    let authority = origin.strip_prefix("http://").or_else(|| origin.strip_prefix("https://"));
    authority.is_some_and(|authority| authority.eq_ignore_ascii_case(host))
}

fn shown(value: &HeaderValue) -> String {
    String::from_utf8_lossy(value.as_bytes()).chars().take(SHOWN_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts() -> Hosts {
        Hosts::new("http.allowed_hosts", &["UAV-3.lab.example.".to_owned()]).expect("a name")
    }

    fn ask(headers: &[(&'static str, &str)]) -> Result<(), (u16, String)> {
        ask_for("/api/v1/status", headers)
    }

    fn ask_for(uri: &str, headers: &[(&'static str, &str)]) -> Result<(), (u16, String)> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::from_str(value).expect("a value"));
        }
        hosts().check(&uri.parse().expect("a path"), &map).map_err(|refusal| {
            assert!(refusal.close);
            (refusal.status.as_u16(), refusal.message.into_owned())
        })
    }

    #[test]
    fn a_server_answers_to_addresses_and_to_its_own_names_only() {
        let own = machine_names();
        let mut good: Vec<String> =
            ["127.0.0.1:8700", "10.0.0.7", "[::1]:8080", "[2001:db8::7]", "localhost:1"]
                .map(str::to_owned)
                .into();
        good.extend(own.iter().map(|name| format!("{name}:8080")));
        good.extend(["LOCALHOST", "uav-3.lab.example:8080", "uav-3.lab.example."].map(str::to_owned));
        for host in &good {
            assert_eq!(ask(&[("host", host)]), Ok(()), "{host}");
            assert_eq!(ask(&[("host", host), ("origin", &format!("http://{host}"))]), Ok(()), "{host}");
        }
        for host in [
            "evil.example:8930",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "uav-3.lab.example.evil.example",
            "lab.example",
            "2001:db8::7",
            "user@127.0.0.1",
            "evil.example#127.0.0.1",
            "",
        ] {
            let (status, message) = ask(&[("host", host)]).expect_err(host);
            assert!([421, 400].contains(&status), "{host}: {status}");
            assert!(message.starts_with("Host: found ") && message.contains("expected"), "{message}");
        }
        let (status, message) = ask(&[("host", "evil.example:8930")]).expect_err("another name");
        assert_eq!(status, 421);
        assert!(
            message.starts_with("Host: found \"evil.example:8930\", expected an IP address, localhost, ")
                && message.ends_with("or a name that is listed in http.allowed_hosts"),
            "{message}"
        );
        assert_eq!(ask(&[]).expect_err("none").0, 400);
        assert_eq!(ask(&[("host", "127.0.0.1"), ("host", "evil.example")]).expect_err("two").0, 400);
        let proxied = ask_for("http://evil.example/api/v1/status", &[("host", "127.0.0.1")]);
        assert_eq!(proxied.expect_err("another name in the path").0, 421);
    }

    #[test]
    fn a_page_of_another_origin_is_refused() {
        for origin in [
            "http://evil.example",
            "null",
            "http://10.0.0.7:8081",
            "http://10.0.0.7",
            "http://10.0.0.7:8080.evil.example",
            "10.0.0.7:8080",
            "",
        ] {
            let (status, message) = ask(&[("host", "10.0.0.7:8080"), ("origin", origin)]).expect_err(origin);
            assert_eq!(status, 403, "{origin}");
            let expected = format!(
                "Origin: found {origin:?}, expected that of this server, http://10.0.0.7:8080, or none"
            );
            assert_eq!(message, expected);
        }
        let two = [("host", "10.0.0.7"), ("origin", "http://10.0.0.7"), ("origin", "http://evil.example")];
        assert_eq!(ask(&two).expect_err("two origins").0, 403);
    }

    #[test]
    fn a_name_that_is_none_is_named() {
        for bad in ["", ".", "http://uav-3", "uav-3:8080", "uav 3", "*", &"x".repeat(300)] {
            let error = Hosts::new("x", &[bad.to_owned()]).expect_err(bad).to_string();
            assert!(error.starts_with("found ") && error.contains("expected a host name"), "{error}");
        }
    }
}
