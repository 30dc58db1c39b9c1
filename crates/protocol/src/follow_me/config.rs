//! What one aircraft of a FollowMe flight is configured with.

use core::fmt;

use wingbeat_geo::Duration;
use wingbeat_wire::VehicleId;

use crate::swarm;

/// What one aircraft knows before it meets the others. [`Config::new`] gives the published numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// Meeting, taking off, landing. Its master is the leader, whom a pilot flies.
    pub swarm: swarm::Config,
    /// Height above home at which the slaves assemble, and from which the leader is followed (reference: 19 m).
    pub height_m: f64,
    /// How often the leader tells where it is (thesis 7.3.3: 1000 ms).
    pub refresh: Duration,
    /// How fast the outermost slot moves at most because the formation turns (leader's), metres per second;
    /// infinite turns with every turn of the nose, as published. A pilot turns the nose faster than any slave can
    /// fly around the leader: told of half a turn at once, every slave flies straight through the leader.
    pub turn_m_s: f64,
    /// A leader that has not been heard for so long is lost.
    pub leader_timeout: Duration,
    /// What a slave does then.
    pub leader_lost: LeaderLost,
    /// Whether a slave that holds because its leader was lost follows again when it hears it again.
    pub follows_again: bool,
    /// How slaves come down when the leader does.
    pub landing: Landing,
    /// Whether a formation closer than [`Config::distance_least_m`] is flown all the same.
    pub accepts_close: bool,
}

/// What a slave does that no longer hears its leader.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LeaderLost {
    /// Hold position for an operator to decide, then land.
    #[default]
    Hold,
    /// Land where it is.
    Land,
    /// Return to launch.
    Return,
}

/// How slaves come down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    /// Where they are (thesis 7.1.2).
    #[default]
    InPlace,
    /// In the formation drawn together around the leader (the reference's later version).
    Formation,
}

/// The word is none of those that a configuration can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownWord {
    /// Which can.
    pub expected: &'static str,
}

impl fmt::Display for UnknownWord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "expected {}", self.expected)
    }
}

impl core::str::FromStr for LeaderLost {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "hold" => Ok(Self::Hold),
            "land" => Ok(Self::Land),
            "return" => Ok(Self::Return),
            _ => Err(UnknownWord { expected: "hold, land or return" }),
        }
    }
}

impl core::str::FromStr for Landing {
    type Err = UnknownWord;
    fn from_str(word: &str) -> Result<Self, UnknownWord> {
        match word {
            "in_place" => Ok(Self::InPlace),
            "formation" => Ok(Self::Formation),
            _ => Err(UnknownWord { expected: "in_place or formation" }),
        }
    }
}

impl Config {
    /// The published numbers.
    pub fn new(me: VehicleId, leader: VehicleId, aircraft: usize) -> Self {
        let mut swarm = swarm::Config::new(me, leader, aircraft);
        swarm.piloted_master = true;
        Self {
            swarm,
            height_m: 19.0,
            refresh: Duration::from_secs(1),
            turn_m_s: 3.0,
            leader_timeout: Duration::from_secs(2),
            leader_lost: LeaderLost::default(),
            follows_again: false,
            landing: Landing::default(),
            accepts_close: false,
        }
    }

    /// The least distance between slots at which the leader does not fly into a slave. A slave is tens of metres
    /// behind its slot, and more so the more often it is told (thesis Table 7.1): a leader that flies towards a
    /// slave closes that distance. Measured with nine aircraft in line and in a matrix behind a leader at
    /// 4.9 m/s: 11 m were left at 50 m and 1000 ms, 8 m at 50 m and 750 ms, 18 m at 75 m and 500 ms, 9 m at
    /// 100 m and 250 ms.
    pub fn distance_least_m(&self) -> f64 {
        match self.refresh.as_millis() {
            1_000.. => 50.0,
            750.. => 55.0,
            500.. => 70.0,
            _ => 110.0,
        }
    }
}
