//! Why datagrams are refused.

use crate::DATAGRAM_LEN_MAX;

/// Why a datagram was dropped. One reason each, counted and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refused {
    /// No byte at all.
    #[error("empty datagram")]
    Empty,
    /// Longer than [`DATAGRAM_LEN_MAX`].
    #[error("longer than {DATAGRAM_LEN_MAX} bytes")]
    TooLong,
    /// The first byte is not the one that this receiver's keys ask for: another version, or one without signatures.
    #[error("unknown protocol version")]
    Version,
    /// The keys of another epoch.
    #[error("other key epoch")]
    Epoch,
    /// The fleet's tag is wrong: another fleet's, or changed on the way.
    #[error("wrong fleet tag")]
    FleetTag,
    /// The roster has no key of the sender.
    #[error("unknown sender")]
    UnknownSender,
    /// Not signed by its sender.
    #[error("wrong signature")]
    Signature,
    /// The bytes are not a datagram of this version.
    #[error("malformed")]
    Malformed,
    /// A whole datagram and something after it.
    #[error("bytes after the end")]
    TrailingBytes,
    /// A position that is not on the earth.
    #[error("position off the earth")]
    OffEarth,
    /// A plan whose parts contradict each other.
    #[error("contradictory plan")]
    Contradiction,
    /// Our own datagram came back: a broadcast reaches its sender too.
    #[error("own datagram")]
    Own,
    /// The sender does not belong to this swarm, or claims a role that it does not have.
    #[error("unexpected sender")]
    UnexpectedSender,
    /// It belongs to another flight.
    #[error("other flight")]
    OtherFlight,
    /// A number that no multicopter has: a speed, an altitude.
    #[error("impossible value")]
    Impossible,
    /// Measured, or sent, too long ago.
    #[error("stale")]
    Stale,
    /// A position too far away to matter here.
    #[error("far away")]
    FarAway,
    /// The sender sends more than its share.
    #[error("storm")]
    Storm,
    /// More aircraft than can be known.
    #[error("no room")]
    NoRoom,
    /// Not newer than the last one of its sender: it was delayed, duplicated or recorded.
    #[error("not newer than the last one")]
    Replayed,
    /// The sender's role does not permit it: an order of no console, an exclusion in an aircraft's own name.
    #[error("not permitted to its sender")]
    NotPermitted,
}

impl Refused {
    /// Every reason, in the order of the counters.
    pub const ALL: [Self; 21] = [
        Self::Empty,
        Self::TooLong,
        Self::Version,
        Self::Epoch,
        Self::FleetTag,
        Self::UnknownSender,
        Self::Signature,
        Self::Malformed,
        Self::TrailingBytes,
        Self::OffEarth,
        Self::Contradiction,
        Self::Own,
        Self::UnexpectedSender,
        Self::OtherFlight,
        Self::Impossible,
        Self::Stale,
        Self::FarAway,
        Self::Storm,
        Self::NoRoom,
        Self::Replayed,
        Self::NotPermitted,
    ];

    /// A stable name for counters and logs.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::TooLong => "too_long",
            Self::Version => "version",
            Self::Epoch => "epoch",
            Self::FleetTag => "fleet_tag",
            Self::UnknownSender => "unknown_sender",
            Self::Signature => "signature",
            Self::Malformed => "malformed",
            Self::TrailingBytes => "trailing_bytes",
            Self::OffEarth => "off_earth",
            Self::Contradiction => "contradiction",
            Self::Own => "own",
            Self::UnexpectedSender => "stranger",
            Self::OtherFlight => "other_flight",
            Self::Impossible => "impossible",
            Self::Stale => "stale",
            Self::FarAway => "far_away",
            Self::Storm => "storm",
            Self::NoRoom => "no_room",
            Self::Replayed => "replayed",
            Self::NotPermitted => "not_permitted",
        }
    }
}
