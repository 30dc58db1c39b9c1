//! Tests of the HTTP server's limits and of TLS.

mod limits;
mod tls;
