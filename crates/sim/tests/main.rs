//! Aircraft, or swarms of them, against simulated flight controllers. One program: most of the time of a small test is its linking.

mod clock;
mod common;
mod companion_death;
mod corrections;
mod energy;
mod faults;
mod ground_loss;
mod hold_in_wind;
mod lengths;
mod logic;
mod long_plan;
mod mbcap;
mod mission;
mod mission_extras;
mod mission_line;
mod motion;
mod motion_reference;
mod orders;
mod pilot;
mod preflight;
mod rejoin;
mod remote_id;
mod returning;
mod stopping;
mod takeover;
