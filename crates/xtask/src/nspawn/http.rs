//! As much of HTTP as asking our own programs takes.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;

/// Longer than an answer takes on a loaded machine.
const PATIENCE: Duration = Duration::from_secs(10);

/// One request; the status code and the body, which is null where it is no JSON.
pub(super) fn ask(address: &str, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    let body = body.map(ToString::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(address).with_context(|| format!("connecting to {address}"))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).with_context(|| format!("reading from {address}"))?;
    parse(&answer).with_context(|| format!("{method} {path} at {address}: found {answer:?}, expected HTTP"))
}

fn parse(answer: &str) -> Option<(u16, Value)> {
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let code = head.strip_prefix("HTTP/1.1 ")?.split(' ').next()?.parse().ok()?;
    Some((code, serde_json::from_str(body).unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_its_code_and_its_json() {
        let found = parse("HTTP/1.1 202 Accepted\r\ncontent-length: 9\r\n\r\n{\"a\": 1} ");
        assert_eq!(found, Some((202, serde_json::json!({"a": 1}))));
        assert_eq!(parse("HTTP/1.1 204 No Content\r\n\r\n"), Some((204, Value::Null)));
        assert_eq!(parse("SSH-2.0\r\n\r\n"), None);
        assert_eq!(parse(""), None);
    }
}
