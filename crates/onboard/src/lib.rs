//! The aircraft's daemon as a library. (Its module map is written at the end of this file's header.)

mod http;
mod mission;
mod stream;

pub use http::openapi;
