//! `wingbeat ground`: the PC Companion.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use clap::Args;
use wingbeat_ground::{Config, Ground, Hosts};

/// Arguments of `wingbeat ground`.
#[derive(Args)]
pub(crate) struct Arguments {
    /// Addresses of the aircraft's APIs, HOST:PORT.
    #[arg(required = true)]
    aircraft: Vec<String>,
    /// Where the console is served.
    #[arg(long, default_value = "127.0.0.1:8700")]
    bind: SocketAddr,
    /// A name under which the console is opened, besides IP addresses, localhost and this computer's own name;
    /// may be repeated. Requests under another name are refused.
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// The built page.
    #[arg(long, value_name = "DIR")]
    web: Option<PathBuf>,
}

/// Serves until Ctrl-C.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let end = crate::end_signal()?;
        let hosts = Hosts::new("--allow-host", &arguments.allow_host).context("--allow-host")?;
        let config = Config {
            bind: arguments.bind,
            aircraft: arguments.aircraft.clone(),
            web_dir: arguments.web.clone(),
            hosts,
        };
        let ground = Ground::start(config).await?;
        println!("PC Companion: http://{}", ground.address());
        end.await;
        ground.stop().await;
        Ok(ExitCode::SUCCESS)
    })
}
