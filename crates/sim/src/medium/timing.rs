//! Times of 802.11 with OFDM in a 20 MHz channel. Clauses are those of IEEE 802.11-2020.
//!
//! Nanoseconds: microseconds would make two datagrams of one microsecond leave together, which is a quarter
//! of the time that carrier sense takes.

use wingbeat_geo::{Duration, Instant};

/// Nanoseconds since the start of the simulated world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of time.
    pub const ZERO: Self = Self(0);
    /// Later than everything.
    pub const NEVER: Self = Self(u64::MAX);

    /// So many microseconds.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros.saturating_mul(1_000))
    }
    /// The world's time, exactly.
    pub const fn of(instant: Instant) -> Self {
        Self::from_micros(instant.as_micros())
    }
    /// The world's time, not before it.
    pub const fn instant(self) -> Instant {
        if self.0 == u64::MAX { Instant::NEVER } else { Instant::from_micros(self.0.div_ceil(1_000)) }
    }
    /// So much later.
    #[must_use]
    pub const fn plus(self, nanos: u64) -> Self {
        Self(self.0.saturating_add(nanos))
    }
    /// Time since `earlier`; zero if that is later.
    pub const fn since(self, earlier: Self) -> u64 {
        self.0.saturating_sub(earlier.0)
    }
}

/// aSlotTime (Table 17-21), nanoseconds.
pub const SLOT_NS: u64 = 9_000;
/// aSIFSTime (Table 17-21), nanoseconds.
pub const SIFS_NS: u64 = 16_000;
/// DIFS = aSIFSTime + 2 aSlotTime (10.3.7), nanoseconds.
pub const DIFS_NS: u64 = SIFS_NS + 2 * SLOT_NS;
/// EIFS = aSIFSTime + AckTxTime + DIFS (10.3.7), an Ack frame being of 14 bytes (9.3.1.4) at the lowest
/// mandatory rate, nanoseconds.
pub const EIFS_NS: u64 = SIFS_NS + ppdu_ns(14) + DIFS_NS;
/// aCWmin (Table 17-21). Frames to a group are not acknowledged and not repeated, so that the window never grows
/// (10.3.3, 10.3.6).
pub const CONTENTION_WINDOW: u64 = 15;
/// From the first bit at an antenna until carrier sense reports it: aCCATime is below 4 µs (Table 17-21), and 17.3.10.6
/// demands the report within 4 µs.
pub const SENSE_NS: u64 = 4_000;
/// The short and the long training sequence of 8 µs each (17.3.2.2), nanoseconds.
pub const PREAMBLE_NS: u64 = 16_000;
/// SIGNAL, one symbol (17.3.2.2), nanoseconds.
const SIGNAL_NS: u64 = 4_000;
/// A symbol with its guard interval (Table 17-5), nanoseconds.
const SYMBOL_NS: u64 = 4_000;
/// Data bits of a symbol at 6 Mbit/s, N_DBPS (Table 17-4).
const SYMBOL_BITS: u64 = 24;
/// SERVICE (17.3.5.2) and tail (17.3.5.3), bits.
const SERVICE_AND_TAIL_BITS: u64 = 16 + 6;
/// MAC header of a data frame without QoS and with three addresses (9.2.3, 9.3.2.1), FCS (9.2.4.8), LLC and SNAP, IPv4 and
/// UDP headers, bytes.
const OVERHEAD_BYTES: u64 = 24 + 4 + 8 + 20 + 8;

/// Time on the air of a PSDU of so many bytes at 6 Mbit/s: TXTIME of 17.4.3.
const fn ppdu_ns(psdu_bytes: u64) -> u64 {
    let symbols = (SERVICE_AND_TAIL_BITS + 8 * psdu_bytes).div_ceil(SYMBOL_BITS);
    PREAMBLE_NS + SIGNAL_NS + SYMBOL_NS * symbols
}

/// Time on the air of a UDP broadcast at 6 Mbit/s, by its payload.
pub fn airtime(payload_bytes: usize) -> Duration {
    Duration::from_nanos(ppdu_ns(payload_bytes as u64 + OVERHEAD_BYTES))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_those_computed_by_hand_from_the_standard() {
        let micros = |bytes| airtime(bytes).as_micros();
        // 705 + 64 = 769 bytes: 6174 bits, 257.25 symbols.
        assert_eq!(micros(705), 20 + 4 * 258);
        // 464 bytes: 3734 bits, 155.6 symbols.
        assert_eq!(micros(400), 20 + 4 * 156);
        // 64 bytes: 534 bits, 22.25 symbols; 68 bytes fill 23.6 symbols.
        assert_eq!((micros(0), micros(4)), (20 + 4 * 23, 20 + 4 * 24));
        // 1472 + 64 = 1536 bytes: 12310 bits, 512.9 symbols.
        assert_eq!(micros(1472), 20 + 4 * 513);
        assert_eq!((DIFS_NS, ppdu_ns(14), EIFS_NS), (34_000, 44_000, 94_000));
    }

    #[test]
    fn the_worlds_time_is_never_before_the_mediums() {
        assert_eq!(Nanos(1_000).instant(), Instant::from_micros(1));
        assert_eq!(Nanos(1_001).instant(), Instant::from_micros(2));
        assert_eq!((Nanos::of(Instant::NEVER), Nanos::NEVER.instant()), (Nanos::NEVER, Instant::NEVER));
    }
}
