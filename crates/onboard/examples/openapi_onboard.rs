//! Prints the OpenAPI document of `wingbeatd`; `cargo xtask openapi` writes it to docs/openapi.

use std::io::{self, Write};

fn main() -> io::Result<()> {
    let document = wingbeat_onboard::openapi().to_pretty_json().map_err(io::Error::other)?;
    writeln!(io::stdout(), "{document}")
}
