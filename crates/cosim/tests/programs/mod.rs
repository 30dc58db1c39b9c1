//! Programs in the place of SITL: such that have its options and do something else, and what they were started with.
#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]
#![allow(clippy::disallowed_methods, reason = "another process is waited for")]

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration as Wall, Instant as Now};

use wingbeat_cosim::copter::{Config, Copter, STRETCH};
use wingbeat_cosim::incidents::Sensors;
use wingbeat_geo::{Instant, Position};
use wingbeat_sim::autopilot::Autopilot;
use wingbeat_sim::motion::{BatteryParameters, WindParameters};
use wingbeat_sim::rigid::Body;

/// So long a test waits for what comes within moments.
pub const END: Wall = Wall::from_secs(60);

pub fn config(silence: Wall) -> Config {
    let home = Position { latitude_e7: 394_825_940, longitude_e7: -3_462_650, altitude_mm: 0 };
    Config {
        home,
        heading_rad: 1.0,
        booted_at: Instant::ZERO,
        wind: WindParameters::default(),
        wind_full_m: 10.0,
        weather: (1, home),
        body: Body::default(),
        battery: BatteryParameters::default(),
        defaults: "SYSID_THISMAV 1\n".into(),
        physics: None,
        sensors: Sensors::default(),
        stretch: STRETCH,
        silence,
    }
}

pub fn executable(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// A program with the options and the version of SITL that does something else.
fn program(folder: &Path, version: &str, option: &str, body: &str) -> PathBuf {
    let path = folder.join("arducopter");
    let help = format!("if [ \"$1\" = --help ]; then echo --home --speedup {option}; exit; fi");
    std::fs::write(&path, format!("#!/bin/sh\n# {version}\n{help}\n{body}\n")).unwrap();
    executable(&path);
    path
}

/// One of 3.5.
pub fn old(folder: &Path, body: &str) -> PathBuf {
    program(folder, "APM:Copter V3.5.7", "--uartA", body)
}

/// One of 4.6.
pub fn new(folder: &Path, body: &str) -> PathBuf {
    program(folder, "ArduCopter V4.6.2", "--serial0", body)
}

/// What a program was started with, of which it wrote a line.
pub struct Arguments(pub Vec<String>);

impl Arguments {
    /// Waits for the line.
    pub fn of(file: &Path) -> Self {
        let end = Now::now() + END;
        loop {
            match std::fs::read_to_string(file) {
                Ok(text) if text.ends_with('\n') => {
                    return Self(text.split_whitespace().map(str::to_owned).collect());
                }
                _ => assert!(Now::now() < end, "the program was not started"),
            }
            std::thread::sleep(Wall::from_millis(5));
        }
    }

    /// The word behind an option.
    pub fn value(&self, name: &str) -> &str {
        let at =
            self.0.iter().position(|word| word == name).unwrap_or_else(|| panic!("{name}: {:?}", self.0));
        &self.0[at + 1]
    }

    pub fn port(&self, name: &str) -> u16 {
        self.value(name).parse().unwrap()
    }
}

pub fn flown(copter: &mut Copter, until: Instant) -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    copter.begin(until);
    copter.finish(&mut bytes).map(|()| bytes)
}
