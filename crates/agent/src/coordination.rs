//! The protocols that an aircraft can be configured with: one at a time flies it. A protocol of your own
//! becomes one of them by a line at the end of this file.

use core::ops::{Deref, DerefMut};
use serde::{Deserialize, Serialize};

use wingbeat_geo::Instant;
use wingbeat_protocol::{ConfigError, Configuration, Protocol, follow_me, mbcap, mission, muscop, sweep};
use wingbeat_wire::VehicleId;

macro_rules! protocols {
    ($($(#[$about:meta])* $name:ident($config:ty),)+) => {
        /// Which protocol flies the aircraft, with its numbers.
        // One is kept for each aircraft.
        #[allow(clippy::large_enum_variant)]
        #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
        pub enum Coordination {
            $($(#[$about])* $name($config),)+
        }

        /// The protocol of one flight.
        // One lives at a time, in its agent, and there is no allocator to put the larger one elsewhere.
        #[allow(clippy::large_enum_variant)]
        pub(crate) enum ActiveProtocol {
            $($name(<$config as Configuration>::Machine),)+
        }

        $(impl From<$config> for Coordination {
            fn from(config: $config) -> Self {
                Self::$name(config)
            }
        })+

        impl Coordination {
            /// Id of this aircraft.
            pub fn me(&self) -> VehicleId {
                match self { $(Self::$name(config) => config.me(),)+ }
            }

            /// Lowest and highest height of a waypoint above home, metres.
            pub fn heights_m(&self) -> (f64, f64) {
                match self { $(Self::$name(config) => config.heights_m(),)+ }
            }

            /// Judges every number of the protocol.
            ///
            /// # Errors
            /// The first that cannot be flown, with its section.
            pub fn check(&self) -> Result<(), ConfigError> {
                match self { $(Self::$name(config) => config.check(),)+ }
                    .map_err(|error| error.within(self.section()))
            }

            /// Section of the configuration file that has the protocol's keys.
            pub fn section(&self) -> &'static str {
                match self { $(Self::$name(_) => <$config as Configuration>::SECTION,)+ }
            }

            pub(crate) fn begin(&self, seed: u64, now: Instant) -> ActiveProtocol {
                match self { $(Self::$name(config) => ActiveProtocol::$name(config.begin(seed, now)),)+ }
            }
        }

        impl Deref for ActiveProtocol {
            type Target = dyn Protocol;
            fn deref(&self) -> &Self::Target {
                match self { $(Self::$name(flight) => flight,)+ }
            }
        }

        impl DerefMut for ActiveProtocol {
            fn deref_mut(&mut self) -> &mut Self::Target {
                match self { $(Self::$name(flight) => flight,)+ }
            }
        }
    };
}

protocols! {
    /// A mission of its own, and nothing else.
    Mission(mission::Config),
    /// One mission, flown as a formation.
    Muscop(muscop::Config),
    /// A mission of its own, kept apart from others.
    Mbcap(mbcap::Config),
    /// A formation that follows an aircraft flown by a pilot.
    FollowMe(follow_me::Config),
    /// An area, searched in parallel lanes.
    Sweep(sweep::Config),
}
