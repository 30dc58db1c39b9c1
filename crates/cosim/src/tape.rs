//! What was asked of ns-3 during a flight: where the radios were and what they sent. It is run again without the world, in one
//! piece: for what the coupling costs beside ns-3 alone, and for what another network would have done with the same flight.

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use wingbeat_geo::{DVec3, Instant};
use wingbeat_sim::medium::FlowFigures;
use wingbeat_sim::medium::timing::Nanos;

use crate::ns3::{Config, Ns3, Spent};

/// It is handed over in pieces of this length, so that no request is large.
const PIECE_NS: u64 = 10_000_000_000;

/// A datagram that was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When.
    pub at_ns: u64,
    /// Index of the sender.
    pub from: usize,
    /// The number of the datagram.
    pub id: u32,
    /// Its size.
    pub bytes: u16,
}

/// What was asked, in order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tape {
    movers: usize,
    /// Of the radios that move, from a time on.
    moves: Vec<(u64, Vec<DVec3>)>,
    sent: Vec<Sent>,
    /// Of each request: until when, and how many moves and datagrams had come by then.
    asked: Vec<(u64, usize, usize)>,
    end_ns: u64,
    /// Receptions of datagrams, flows not counted.
    pub receptions: u64,
    /// What it cost.
    pub spent: Spent,
}

/// What a tape came to without the world.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// Receptions of datagrams, flows not counted.
    pub receptions: u64,
    /// What flows brought.
    pub flows: Vec<FlowFigures>,
    /// What it cost.
    pub spent: Spent,
}

impl Tape {
    /// Of so many radios that move.
    pub fn new(movers: usize) -> Self {
        Self { movers, ..Self::default() }
    }

    /// Radios that move.
    pub fn movers(&self) -> usize {
        self.movers
    }

    /// Where they were, and since when.
    pub fn moves(&self) -> impl Iterator<Item = (Instant, &[DVec3])> {
        self.moves.iter().map(|(at_ns, places)| (Nanos(*at_ns).instant(), &**places))
    }

    /// Datagrams that were sent.
    pub fn sent(&self) -> usize {
        self.sent.len()
    }

    /// When it ends.
    pub fn end(&self) -> Instant {
        Nanos(self.end_ns).instant()
    }

    /// From then on they are at these places.
    pub fn moved(&mut self, at: Instant, places: &[DVec3]) {
        let at_ns = Nanos::of(at).0;
        self.moves.push((at_ns, places.to_vec()));
        self.end_ns = self.end_ns.max(at_ns);
    }

    pub(crate) fn take(&mut self, until_ns: u64, moves: &[(u64, Vec<DVec3>)], sent: &[Sent], movers: usize) {
        self.moves.extend(moves.iter().map(|(at_ns, places)| (*at_ns, places[..movers].to_vec())));
        self.sent.extend_from_slice(sent);
        self.asked.push((until_ns, self.moves.len(), self.sent.len()));
    }

    pub(crate) fn answered(&mut self, reached_ns: u64, receptions: u64, spent: Spent) {
        self.end_ns = self.end_ns.max(reached_ns);
        self.receptions += receptions;
        self.spent = spent;
    }

    /// Runs it in a network of its own.
    ///
    /// # Errors
    /// ns-3 does not start, ends, or falls silent.
    pub fn replay(&self, program: &Path, config: &Config, seed: u64, silence: Duration) -> Result<Replayed> {
        let mut ns3 = Ns3::start(program, config, seed, self.movers, silence)?;
        ns3.count_cost()?;
        let (mut moves, mut sent) = (self.moves.iter().peekable(), self.sent.iter().peekable());
        let mut receptions = 0;
        let mut until_ns = 0;
        while until_ns < self.end_ns {
            until_ns = self.end_ns.min(until_ns + PIECE_NS);
            while let Some((at_ns, places)) = moves.next_if(|(at_ns, _)| *at_ns < until_ns) {
                ns3.moves_at(Nanos(*at_ns).instant(), places);
            }
            while let Some(sent) = sent.next_if(|sent| sent.at_ns < until_ns) {
                ns3.send_again(*sent);
            }
            receptions += ns3.run_to(Nanos(until_ns).instant())?;
        }
        Ok(Self::replayed(&ns3, receptions))
    }

    /// The same by the requests of the flight, one after the other: what they cost where nothing else happens between them.
    ///
    /// # Errors
    /// As [`Tape::replay`].
    pub fn ask_again(
        &self,
        program: &Path,
        config: &Config,
        seed: u64,
        silence: Duration,
    ) -> Result<Replayed> {
        let mut ns3 = Ns3::start(program, config, seed, self.movers, silence)?;
        ns3.count_cost()?;
        let (mut moved, mut sent, mut receptions) = (0, 0, 0);
        for &(until_ns, moves_until, sent_until) in &self.asked {
            for (at_ns, places) in &self.moves[moved..moves_until] {
                ns3.moves_at(Nanos(*at_ns).instant(), places);
            }
            self.sent[sent..sent_until].iter().for_each(|one| ns3.send_again(*one));
            (moved, sent) = (moves_until, sent_until);
            receptions += ns3.ask(until_ns, true)?.len() as u64;
        }
        Ok(Self::replayed(&ns3, receptions))
    }

    fn replayed(ns3: &Ns3, receptions: u64) -> Replayed {
        Replayed { receptions, flows: wingbeat_sim::medium::Medium::flows(ns3).to_vec(), spent: ns3.spent() }
    }
}
