//! Requests to our own programs.

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::Value;
use ureq::http::Request;

/// Longer than an answer takes on a loaded machine.
const TIMEOUT: Duration = Duration::from_secs(10);

/// One request; the status code and the body, which is null where it is no JSON.
pub(crate) fn ask(address: &str, method: &str, path: &str, body: Option<&Value>) -> Result<(u16, Value)> {
    // A proxy of the environment does not reach the network namespace that this runs in.
    let client = ureq::Agent::config_builder()
        .proxy(None)
        .http_status_as_error(false)
        .timeout_global(Some(TIMEOUT))
        .build()
        .new_agent();
    let request = Request::builder().method(method).uri(format!("http://{address}{path}"));
    let response = match body {
        Some(body) => client.run(request.header("content-type", "application/json").body(body.to_string())?),
        None => client.run(request.body(())?),
    };
    let mut response = response.with_context(|| format!("{method} {path} at {address}"))?;
    let text = response.body_mut().read_to_string();
    let text = text.with_context(|| format!("{method} {path} at {address}: reading the body"))?;
    Ok((response.status().as_u16(), serde_json::from_str(&text).unwrap_or(Value::Null)))
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// Asks a server that answers one request with these bytes; what it received, and our result.
    fn asked(answer: &'static str, body: Option<&Value>) -> (String, Result<(u16, Value)>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut received = [0; 1_024];
            let length = stream.read(&mut received).unwrap();
            stream.write_all(answer.as_bytes()).unwrap();
            String::from_utf8_lossy(&received[..length]).into_owned()
        });
        let result = ask(&address, if body.is_some() { "POST" } else { "GET" }, "/api/v1/x", body);
        (server.join().unwrap(), result)
    }

    #[test]
    fn an_answer_is_its_code_and_its_json() {
        let conflict = "HTTP/1.1 409 Conflict\r\ncontent-length: 9\r\n\r\n{\"a\": 1} ";
        let (received, result) = asked(conflict, Some(&serde_json::json!({"id": "b"})));
        assert_eq!(result.unwrap(), (409, serde_json::json!({"a": 1})));
        assert!(received.starts_with("POST /api/v1/x HTTP/1.1\r\n"), "{received}");
        assert!(received.contains("\r\ncontent-type: application/json\r\n"), "{received}");
        let (received, result) = asked("HTTP/1.1 204 No Content\r\n\r\n", None);
        assert_eq!(result.unwrap(), (204, Value::Null));
        assert!(received.starts_with("GET /api/v1/x HTTP/1.1\r\n"), "{received}");
    }

    #[test]
    fn what_is_no_http_is_an_error_that_names_the_request() {
        for answer in ["SSH-2.0\r\n\r\n", ""] {
            let error = format!("{:#}", asked(answer, None).1.unwrap_err());
            assert!(error.starts_with("GET /api/v1/x at 127.0.0.1:"), "{error}");
        }
    }
}
