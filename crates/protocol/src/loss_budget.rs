//! Time-outs against a loss budget: how many datagrams in a row may be lost before a time-out counts its sender as silent.
//!
//! A time-out is a false alarm where its sender lives and the channel lost everything that it sent. Losses of one link within a
//! second are one event: the published channel draws them once a second. A time-out that ends the flight of an aircraft holds
//! [`ENDS_PER_HOUR`]; one after which an aircraft waits until it receives the sender again holds [`WAITS_PER_HOUR`].

use wingbeat_geo::Duration;

/// Losses within this time are one event.
pub const CORRELATED: Duration = Duration::from_secs(1);
/// False alarms per flight hour that a time-out may have which ends the flight of an aircraft.
pub const ENDS_PER_HOUR: f64 = 1e-3;
/// False alarms per flight hour and link that a time-out may have after which an aircraft waits.
pub const WAITS_PER_HOUR: f64 = 60.0;

/// Datagrams that are awaited on links of the same length.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Links {
    /// Share of the datagrams that is lost, 0 to 1.
    pub loss: f64,
    /// Period of the datagrams.
    pub period: Duration,
    /// Number of links.
    pub count: u32,
}

impl Links {
    /// Returns the time between two independent losses.
    fn step(&self) -> Duration {
        self.period.max(CORRELATED)
    }

    /// Returns how many losses in a row make a false alarm of a time-out. The datagram that is due when the time-out expires may
    /// come too late.
    pub fn losses_in_a_row(&self, timeout: Duration) -> u32 {
        let awaited = timeout.saturating_sub(self.period);
        let losses = awaited.as_micros().div_ceil(self.step().as_micros().max(1));
        u32::try_from(losses).unwrap_or(u32::MAX)
    }

    /// Returns the false alarms per hour of a time-out on all links together.
    pub fn false_alarms_per_hour(&self, timeout: Duration) -> f64 {
        let steps_per_hour = 3_600.0 / self.step().as_secs_f64();
        let loss = self.loss.clamp(0.0, 1.0);
        let run = libm::pow(loss, f64::from(self.losses_in_a_row(timeout)));
        // A run of losses begins after a datagram that was received.
        steps_per_hour * (1.0 - loss) * run * f64::from(self.count)
    }

    /// Returns the periods of the shortest time-out that has at most so many false alarms per hour; `None` where the channel loses
    /// so much that no time-out of [`PERIODS_MOST`] periods does.
    pub fn periods(&self, most_per_hour: f64) -> Option<u32> {
        if self.loss >= 1.0 {
            return None;
        }
        (1..=PERIODS_MOST)
            .find(|&periods| self.false_alarms_per_hour(self.step() * periods) <= most_per_hour)
            .map(|steps| steps * (self.step().as_micros().div_ceil(self.period.as_micros().max(1))) as u32)
    }
}

/// Longer time-outs are not searched, in independent losses.
pub const PERIODS_MOST: u32 = 120;

/// Consequence of a false alarm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consequence {
    /// The flight of an aircraft ends, or it is no longer waited for.
    Ends,
    /// An aircraft waits, or keeps more distance, until it receives the sender again.
    Waits,
}

impl Consequence {
    /// Returns the false alarms per flight hour that a time-out with this consequence may have on so many links.
    pub fn most_per_hour(self, links: u32) -> f64 {
        match self {
            Self::Ends => ENDS_PER_HOUR,
            Self::Waits => WAITS_PER_HOUR * f64::from(links),
        }
    }
}

/// A time-out of a protocol, and the formation that its default is reckoned for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timeout {
    /// Key of the configuration, or the rule.
    pub name: &'static str,
    /// Datagrams that are awaited.
    pub awaits: &'static str,
    /// Period of these datagrams.
    pub period: Duration,
    /// The default.
    pub default: Duration,
    /// Greatest distance of a link, in metres.
    pub distance_m: f64,
    /// Number of such links in the formation.
    pub links: u32,
    /// Consequence of a false alarm.
    pub consequence: Consequence,
}

impl Timeout {
    /// Returns its links on a channel that loses this share at [`Timeout::distance_m`].
    pub const fn links(&self, loss: f64) -> Links {
        Links { loss, period: self.period, count: self.links }
    }
}

/// Followers of nine in a line.
const FOLLOWERS: u32 = 8;
/// MUSCOP flies nine in a line 50 m apart: from the leader in the middle to the outermost slot (thesis 6.3.1), in metres.
const MUSCOP_M: f64 = 200.0;
/// FollowMe flies nine in a line 75 m apart (thesis 7.3.1): the outermost slot is 300 m from the leader, and its follower is up to
/// 50 m behind it, in metres.
const FOLLOW_ME_M: f64 = 350.0;
/// MBCAP's aircraft avoid each other within this distance, in metres.
const MBCAP_M: f64 = 200.0;

/// Refreshes of FollowMe whose time-outs are reckoned, in milliseconds.
const FOLLOW_ME_REFRESHES_MS: [u64; 4] = [250, 500, 1_000, 2_000];

/// Returns the time-outs of FollowMe at this refresh with their defaults: the leader is lost, and a
/// follower holds.
fn of_follow_me(refresh: Duration) -> [Timeout; 2] {
    use wingbeat_wire::VehicleId;
    let mut config = crate::follow_me::Config::new(VehicleId(1), VehicleId(2), 9);
    config.refresh = refresh;
    config.leader_timeout = crate::follow_me::Config::default_leader_timeout(refresh);
    let of_leader = |name, default, consequence| Timeout {
        name,
        awaits: "Coordinates",
        period: refresh,
        default,
        distance_m: FOLLOW_ME_M,
        links: FOLLOWERS,
        consequence,
    };
    [
        of_leader("follow_me.leader_timeout_s", config.leader_timeout, Consequence::Ends),
        of_leader("follow_me: holds", config.holds_after(), Consequence::Waits),
    ]
}

/// Returns the time-outs of all protocols with their defaults.
pub fn timeouts() -> impl Iterator<Item = Timeout> {
    let refreshes = FOLLOW_ME_REFRESHES_MS.into_iter().map(Duration::from_millis);
    refreshes.flat_map(of_follow_me).chain(of_other_protocols())
}

/// Returns the time-outs of MUSCOP and MBCAP-e with their defaults.
fn of_other_protocols() -> [Timeout; 3] {
    use wingbeat_wire::VehicleId;
    let (me, other) = (VehicleId(1), VehicleId(2));
    let muscop = crate::muscop::Config::new(me, other, 9).swarm;
    let mbcap = crate::mbcap::Config::mbcap_e();
    let of_swarm = |name, awaits, default, consequence| Timeout {
        name,
        awaits,
        period: muscop.send_period,
        default,
        distance_m: MUSCOP_M,
        links: FOLLOWERS,
        consequence,
    };
    [
        of_swarm("muscop.time_to_live_ms", "Following, Alive", muscop.time_to_live, Consequence::Ends),
        of_swarm("muscop.silence_ms", "all", muscop.silence, Consequence::Waits),
        Timeout {
            name: "mbcap.beacon_validity_ms",
            awaits: "Beacon",
            period: mbcap.beacon_period,
            default: mbcap.beacon_validity,
            distance_m: MBCAP_M,
            links: 1,
            consequence: Consequence::Ends,
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(loss: f64, period_ms: u64) -> Links {
        Links { loss, period: Duration::from_millis(period_ms), count: 1 }
    }

    #[test]
    fn a_timeout_of_two_refreshes_is_one_loss_and_a_datagram_that_comes_late() {
        let two = Duration::from_secs(2);
        assert_eq!(links(0.1, 1_000).losses_in_a_row(two), 1);
        assert_eq!(links(0.1, 1_000).losses_in_a_row(Duration::from_millis(2_500)), 2);
        assert_eq!(links(0.1, 200).losses_in_a_row(two), 2, "losses of a second come together");
        let per_hour = links(0.1, 1_000).false_alarms_per_hour(Duration::from_secs(4));
        assert!((per_hour - 3_600.0 * 0.9 * 1e-3).abs() < 1e-9, "{per_hour}");
    }

    /// The channel of 802.11a loses this share of the datagrams over [`FOLLOW_ME_M`].
    const LOSS: f64 = 0.0772;

    #[test]
    fn a_follower_holds_its_loss_budget_at_every_refresh() {
        for refresh_ms in [100, 200, 250, 500, 750, 999, 1_000, 1_250, 2_000, 5_000] {
            for timeout in of_follow_me(Duration::from_millis(refresh_ms)) {
                let per_hour = timeout.links(LOSS).false_alarms_per_hour(timeout.default);
                let most = timeout.consequence.most_per_hour(timeout.links);
                assert!(per_hour <= most, "{} at {refresh_ms} ms: {per_hour} per hour", timeout.name);
            }
        }
    }

    #[test]
    fn the_periods_are_the_fewest_within_the_budget() {
        let of = |loss, period_ms| links(loss, period_ms).periods(ENDS_PER_HOUR);
        assert_eq!((of(0.0, 1_000), of(0.058, 1_000), of(0.058, 250)), (Some(2), Some(7), Some(24)));
        assert_eq!((of(0.95, 1_000), of(1.0, 1_000)), (None, None));
        let links = links(0.2, 2_000);
        let periods = links.periods(ENDS_PER_HOUR).unwrap();
        assert!(links.false_alarms_per_hour(links.period * periods) <= ENDS_PER_HOUR);
        assert!(links.false_alarms_per_hour(links.period * (periods - 1)) > ENDS_PER_HOUR);
    }
}
