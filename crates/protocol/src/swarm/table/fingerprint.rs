//! A number for everything in a machine that decides what it does from here on, for searches over all its states.
//!
//! Two machines of one plan with the same number do the same under the same inputs. Times count relative to now, so that
//! the same situation at another time is the same. Left out is what the flight does not read (setup, take-off, `rng`), and
//! by how much an age exceeds the longest that anything in flight asks for.

extern crate std;
use core::hash::{Hash as _, Hasher};

use wingbeat_geo::{Duration, Instant};
use wingbeat_wire::Point;

use super::super::timer::Timer;
use super::super::{Abort, State, Swarm};

/// Ages at a time.
pub(crate) struct Ages {
    now: Instant,
    /// Older makes no difference.
    most: Duration,
}

impl Ages {
    pub(crate) fn of(&self, at: Instant) -> u64 {
        self.now.since(at).min(self.most).as_millis() as u64
    }
}

pub(crate) fn coordinates(point: Point) -> [i32; 3] {
    [point.latitude_e7, point.longitude_e7, point.height_mm]
}

impl<F: Copy + PartialEq + core::fmt::Debug> Swarm<F> {
    /// Adds what decides what follows in the flight, the landing and an abort without a return.
    pub(crate) fn fingerprint(&self, now: Instant, hasher: &mut impl Hasher) {
        // A position is stale after 2 s.
        let most = self.config.time_to_live.max(self.config.silence).max(Duration::from_secs(2));
        let ages = Ages { now, most };
        let (timers, state) = (&self.timers, self.state);
        state.label(|flight| std::format!("{flight:?}")).hash(hasher);
        if let State::Aborted(Abort::Failure { land_at }) = state {
            (land_at.since(now).as_millis() as u64).hash(hasher);
        }
        if let State::Aborted(Abort::LandAside { site, since }) = state {
            (coordinates(site), ages.of(since)).hash(hasher);
        }
        // Once the flight has begun nothing asks for the others, and for these whatever the state.
        for timer in [
            Timer::Broadcast,
            Timer::ArrivalCheck,
            Timer::Blocked,
            Timer::Yield,
            Timer::LandingPath,
            Timer::LandingOrder,
        ] {
            timers.remaining_ms(timer, now).hash(hasher);
        }
        let is_on_the_way = self.navigation.target().is_some();
        is_on_the_way.then(|| timers.remaining_ms(Timer::Leg, now)).hash(hasher);
        (self.ownship.point().map(coordinates), self.ownship.is_armed()).hash(hasher);
        self.members.fingerprint(&ages, hasher);
        self.traffic.fingerprint(&ages, hasher);
        self.landing.fingerprint(hasher);
        self.navigation.fingerprint(&ages, hasher);
        self.fingerprint_aside(&ages, hasher);
        (self.repeat as u8).hash(hasher);
    }
}
