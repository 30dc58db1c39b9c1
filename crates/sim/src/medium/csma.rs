//! 802.11 broadcast as a sequence of events: datagrams handed over, frames that begin and end, jammers.

use std::collections::VecDeque;
use std::sync::Arc;

use wingbeat_geo::{DVec3, Duration, Instant};

use super::link::{Bursts, Draws, Fading, Jammer, Link, Links, Partition, Propagation, milliwatts};
use super::reception::ErrorRates;
use super::station::{Ended, Queued, SENSE_MW, Station};
use super::statistics::Statistics;
use super::timing::{Nanos, airtime};
use super::{Medium, Reception};
use crate::channel::{Counters, Losses, REACHES};
use crate::faults::{Disturbances, Fault};
use crate::rng;

/// What a receiver makes of frames that overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    /// They destroy each other.
    Never,
    /// The strongest of those that begin within 4 µs is followed to its end, and survives if it is strong enough; a
    /// later one is interference.
    Stronger,
    /// The same, but the receiver leaves a frame whose preamble is not over for one that is 5 dB stronger.
    Later,
}

/// A medium.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What distance does.
    pub propagation: Propagation,
    /// Power of every radio and the gains of both antennas, dBm.
    pub power_dbm: f64,
    /// By how much a receiver's noise exceeds the thermal noise of its channel, dB.
    pub noise_figure_db: f64,
    /// What becomes of frames that overlap.
    pub capture: Capture,
    /// What a link does to power.
    pub fading: Fading,
    /// Losses in bursts.
    pub bursts: Option<Bursts>,
    /// Datagrams that a radio keeps until it can send them.
    pub queue: usize,
    /// A datagram that waited longer is not sent.
    pub lifetime: Duration,
    /// Groups that do not reach each other.
    pub partitions: Vec<Partition>,
    /// Sources of noise.
    pub jammers: Vec<Jammer>,
}

/// Thermal noise in 20 MHz at 290 K, dBm.
const THERMAL_DBM: f64 = -100.97;

impl Default for Config {
    /// 20 dBm, two antennas of 5 dBi as the published measurements had, and an exponent with which a frame is found up to
    /// 930 m: there those measurements lost every second frame (936 m by their polynomial).
    fn default() -> Self {
        Self {
            propagation: Propagation::LogDistance { exponent: 2.2, first_metre_db: 46.7 },
            power_dbm: 30.0,
            noise_figure_db: 7.0,
            capture: Capture::Stronger,
            fading: Fading::None,
            bursts: None,
            queue: 500,
            lifetime: Duration::from_millis(500),
            partitions: Vec::new(),
            jammers: Vec::new(),
        }
    }
}

/// A frame on the air.
struct Frame {
    id: u64,
    from: usize,
    start: Nanos,
    end: Nanos,
    /// What arrives where.
    row: Vec<Link>,
    bytes: Arc<[u8]>,
    /// Another one was on the air at the same time, somewhere.
    is_overlapped: bool,
}

/// The medium among a number of radios.
pub struct Csma {
    config: Config,
    rates: ErrorRates,
    stations: Vec<Station>,
    links: Links,
    draws: Draws,
    disturbances: Disturbances,
    /// By end.
    frames: VecDeque<Frame>,
    /// Rows of frames that ended, to be filled again.
    rows: Vec<Vec<Link>>,
    /// Frames so far.
    serial: u64,
    /// When a jammer next begins or ends.
    jam_at: Nanos,
    is_jammed: bool,
    statistics: Statistics,
    by_distance: [Losses; REACHES],
}

/// What happens next.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Next {
    Jam,
    End,
    Access { station: usize },
}

impl Csma {
    /// A medium among `count` radios.
    pub fn new(config: Config, seed: u64, count: usize) -> Self {
        let noise_mw = milliwatts(THERMAL_DBM + config.noise_figure_db);
        let station = |i| Station::new(rng::child(seed, "radio backoff", i as u64), noise_mw);
        let mut csma = Self {
            rates: ErrorRates::new(),
            stations: (0..count).map(station).collect(),
            links: Links::new(config.propagation.clone(), config.power_dbm, count),
            draws: Draws::new(config.fading, config.bursts, seed, count),
            disturbances: Disturbances::new(seed, count),
            frames: VecDeque::new(),
            rows: Vec::new(),
            serial: 0,
            jam_at: Nanos::NEVER,
            is_jammed: false,
            statistics: Statistics::default(),
            by_distance: [Losses::default(); REACHES],
            config,
        };
        csma.jam(Nanos::ZERO);
        csma
    }

    /// Something begins to disturb it. A fault of an aircraft changes nothing here.
    pub fn disturb(&mut self, fault: Fault) {
        self.disturbances.begin(fault);
    }

    /// Where the radios are from `now` on, metres.
    ///
    /// # Panics
    /// If `positions` does not hold one place per radio.
    pub fn moved(&mut self, now: Instant, positions: &[DVec3]) {
        if self.links.moved(positions) && self.is_jammed {
            self.jam(Nanos::of(now));
        }
    }

    /// Hands a datagram to a radio. Times do not go back, and [`Csma::advance`] has come up to `now`.
    pub fn transmit(&mut self, now: Instant, from: usize, bytes: Arc<[u8]>) {
        self.transmit_at(Nanos::of(now), from, bytes);
    }

    /// The same at a time between microseconds.
    pub fn transmit_at(&mut self, now: Nanos, from: usize, bytes: Arc<[u8]>) {
        let station = &mut self.stations[from];
        self.statistics.offered += 1;
        if station.queue.len() >= self.config.queue {
            self.statistics.queue_full += 1;
            return;
        }
        let is_alone = station.queue.is_empty() && now >= station.sends_until;
        self.statistics.waited_for_own += u64::from(!is_alone);
        station.queue.push_back(Queued { bytes, handed_at: now, waited: false });
        if is_alone {
            station.contend(now);
        }
    }

    fn next(&self) -> (Nanos, Next) {
        let end = self.frames.front().map_or(Nanos::NEVER, |frame| frame.end);
        let mut next = (self.jam_at, Next::Jam).min((end, Next::End));
        for (station, ready_at) in self.stations.iter().map(|s| s.ready_at).enumerate() {
            if ready_at < next.0 {
                next = (ready_at, Next::Access { station });
            }
        }
        next
    }

    /// When it next wants to be advanced.
    pub fn poll_timeout(&self) -> Instant {
        self.next().0.instant()
    }

    /// Lets everything happen until a time, and that with it; appends what was received.
    pub fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) {
        self.advance_to(Nanos::of(until), out);
    }

    /// The same until a time between microseconds.
    pub fn advance_to(&mut self, until: Nanos, out: &mut Vec<Reception>) {
        loop {
            let (now, next) = self.next();
            if now > until || now == Nanos::NEVER {
                return;
            }
            match next {
                Next::Jam => self.jam(now),
                Next::End => self.end(out),
                Next::Access { station } => self.send(now, station),
            }
        }
    }

    /// Jammers begin or end, or radios moved among them.
    fn jam(&mut self, now: Nanos) {
        self.jam_at = Nanos::NEVER;
        let mut radiating = Vec::new();
        for jammer in &self.config.jammers {
            let (is_on, changes_at) = jammer.state(now);
            self.jam_at = self.jam_at.min(changes_at);
            radiating.extend(is_on.then_some(*jammer));
        }
        let was_jammed = std::mem::replace(&mut self.is_jammed, !radiating.is_empty());
        if was_jammed || self.is_jammed {
            for (i, station) in self.stations.iter_mut().enumerate() {
                let jam_mw = radiating.iter().map(|jammer| self.links.jammed_mw(jammer, i)).sum();
                station.jam(now, jam_mw, &self.rates);
            }
        }
    }

    /// A radio that waited long enough sends.
    fn send(&mut self, now: Nanos, from: usize) {
        let station = &mut self.stations[from];
        let lifetime_ns = u64::try_from(self.config.lifetime.as_nanos()).unwrap_or(u64::MAX);
        let datagram = loop {
            match station.queue.pop_front() {
                Some(first) if now.since(first.handed_at) > lifetime_ns => self.statistics.expired += 1,
                Some(first) => break first,
                None => return station.give_up_access(now),
            }
        };
        let airtime_ns = u64::try_from(airtime(datagram.bytes.len()).as_nanos()).unwrap_or(u64::MAX);
        let end = now.plus(airtime_ns);
        station.send(end);
        self.statistics.sent += 1;
        self.statistics.waited_for_medium += u64::from(datagram.waited);
        self.statistics.access.add(now.since(datagram.handed_at));

        let mut row = self.rows.pop().unwrap_or_default();
        row.clear();
        row.extend_from_slice(self.links.row(from));
        self.cut(now, from, &mut row);
        self.draws.fade(now, from, &mut row);
        self.serial += 1;
        let id = self.serial;
        for (to, (station, link)) in self.stations.iter_mut().zip(&row).enumerate() {
            if to != from && link.power_mw > 0.0 {
                let at = now.plus(link.delay_ns.into());
                station.arrive(at, id, link.power_mw, self.config.capture, &self.rates);
            }
        }
        let is_overlapped = !self.frames.is_empty();
        self.frames.iter_mut().for_each(|frame| frame.is_overlapped = true);
        let place = self.frames.partition_point(|frame| frame.end <= end);
        let frame = Frame { id, from, start: now, end, row, bytes: datagram.bytes, is_overlapped };
        self.frames.insert(place, frame);
    }

    /// What partitions and silent radios keep apart does not sense each other either.
    fn cut(&mut self, now: Nanos, from: usize, row: &mut [Link]) {
        let (world, disturbances) = (now.instant(), &self.disturbances);
        for partition in self.config.partitions.iter().filter(|p| p.from <= world && world < p.until) {
            for (to, link) in row.iter_mut().enumerate() {
                link.is_cut |= (partition.group >> from ^ partition.group >> to) & 1 == 1;
            }
        }
        if disturbances.are_any() {
            for (to, link) in row.iter_mut().enumerate() {
                link.is_cut |= disturbances.cut(world, from, to);
            }
        }
        row.iter_mut().filter(|link| link.is_cut).for_each(|link| link.power_mw = 0.0);
    }

    /// The frame that ends first ends.
    fn end(&mut self, out: &mut Vec<Reception>) {
        let Some(frame) = self.frames.pop_front() else { return };
        let capture = self.config.capture;
        let mut to_all = Vec::new();
        let receivers = self.stations.len() - 1;
        self.statistics.possible += receivers as u64;
        self.statistics.overlapped += u64::from(frame.is_overlapped);
        for (to, (station, link)) in self.stations.iter_mut().zip(&frame.row).enumerate() {
            if to == frame.from {
                continue;
            }
            let losses = &mut self.by_distance[usize::from(link.reach)];
            (losses.sent, losses.lost) = (losses.sent + 1, losses.lost + 1);
            if link.power_mw == 0.0 {
                let counter = if link.is_cut {
                    &mut self.statistics.cut_off
                } else {
                    &mut self.statistics.out_of_range
                };
                *counter += 1;
                continue;
            }
            let (began_at, at) =
                (frame.start.plus(link.delay_ns.into()), frame.end.plus(link.delay_ns.into()));
            // Summed anew, so that no error of rounding outlives the frames.
            let left_mw = self.frames.iter().map(|other| other.row[to].power_mw).sum();
            let ended = station.end(at, frame.id, capture, left_mw, &self.rates);
            let counter = match ended {
                Ended::Unfollowed if link.power_mw < SENSE_MW => &mut self.statistics.out_of_range,
                Ended::Unfollowed if began_at < station.sends_until => &mut self.statistics.receiver_sending,
                Ended::Unfollowed if frame.is_overlapped => &mut self.statistics.collided,
                Ended::Unfollowed => &mut self.statistics.noise,
                Ended::Followed { exponent, is_overlapped } => {
                    let is_whole =
                        exponent == 0.0 || self.draws.uniform(frame.from, to) < libm::exp(-exponent);
                    station.judge(at, is_whole);
                    if !is_whole {
                        if is_overlapped { &mut self.statistics.collided } else { &mut self.statistics.noise }
                    } else if self.draws.is_lost_in_burst(frame.end, frame.from, to)
                        || self.disturbances.lose(at.instant(), frame.from, to)
                    {
                        &mut self.statistics.lost
                    } else {
                        losses.lost -= 1;
                        let (late, again) = self.disturbances.delay(at.instant(), frame.from, to);
                        let delayed = |by| Reception {
                            at: at.instant() + by,
                            from: frame.from,
                            to: vec![to],
                            bytes: Arc::clone(&frame.bytes),
                        };
                        if late == Duration::ZERO {
                            to_all.push(to);
                        } else {
                            out.push(delayed(late));
                        }
                        out.extend(again.map(|by| delayed(late + by)));
                        &mut self.statistics.received
                    }
                }
            };
            *counter += 1;
            station.rest(at);
        }
        self.stations[frame.from].sent(frame.end);
        if !to_all.is_empty() {
            // The last of them is half a microsecond behind the first in a swarm of 150 m.
            out.push(Reception { at: frame.end.instant(), from: frame.from, to: to_all, bytes: frame.bytes });
        }
        self.rows.push(frame.row);
    }

    /// What it did so far.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// The same as of the published models: a reception that will not happen is lost.
    pub fn counters(&self) -> Counters {
        let Statistics { sent, possible, received, .. } = self.statistics;
        Counters { sent, delivered: received, lost: possible - received }
    }

    /// What it lost so far, by distance over the ground.
    pub fn losses_by_distance(&self) -> &[Losses; REACHES] {
        &self.by_distance
    }
}

impl Medium for Csma {
    fn disturb(&mut self, fault: Fault) {
        Csma::disturb(self, fault);
    }

    fn moved(&mut self, now: Instant, positions: &[DVec3]) {
        Csma::moved(self, now, positions);
    }

    /// A radio that sends now does so from where it was last said to be.
    fn transmit(
        &mut self,
        now: Instant,
        from: usize,
        bytes: Arc<[u8]>,
        _: &[DVec3],
        out: &mut Vec<Reception>,
    ) {
        Csma::advance(self, now, out);
        Csma::transmit(self, now, from, bytes);
    }

    fn advance(&mut self, until: Instant, out: &mut Vec<Reception>) -> Result<(), String> {
        Csma::advance(self, until, out);
        Ok(())
    }

    fn poll_timeout(&self) -> Instant {
        Csma::poll_timeout(self)
    }

    fn counters(&self) -> Counters {
        Csma::counters(self)
    }

    fn statistics(&self) -> Option<&Statistics> {
        Some(Csma::statistics(self))
    }

    fn losses_by_distance(&self) -> &[Losses; REACHES] {
        Csma::losses_by_distance(self)
    }
}
