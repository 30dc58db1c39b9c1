//! Who is who, who is still there, and who leads.
//!
//! A member that has been silent for the time to live is lost: nobody waits for it any more, until it is
//! heard again. One that says that it leaves, or that the operator excludes, is gone for this flight. The
//! leader is the first of the order of succession that is still there: the plan's centre, and then the
//! order of take-off from its end. All derive the same order from the plan.

use wingbeat_geo::{DVec3, Instant};
use wingbeat_wire::{Ending, Message, Point, Refused, SWARM_MAX, VehicleId};

use super::{State, Swarm, TakeOff};
use crate::{Absent, Absentees, Text, text};

/// Two places of one aircraft that are less apart tell no speed, metres.
const MOVED_M: f64 = 0.3;

/// Nor do two words nearer than this, unless they do, seconds.
const WORDS_APART_S: f64 = 0.1;

/// Nobody flies lower, millimetre.
const STANDS_MM: i32 = 1_000;

/// From two places told that far apart no speed is taken, seconds.
pub(super) const STALE_S: f64 = 1.5;

/// A set of slots, as bits.
pub type Slots = u128;

/// What is known of one member.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer {
    id: VehicleId,
    pub(crate) heard_at: Instant,
    /// Where it was when it last said so.
    pub(crate) at: Option<Point>,
    /// How fast it moved then, by where it was before at `moved_at`.
    pub(crate) velocity_m_s: DVec3,
    pub(crate) moved_at: Instant,
    /// When it last said that it stops on its way.
    pub(crate) holds_at: Option<Instant>,
    /// Where it stood before it took off.
    pub(crate) home: Option<Point>,
    /// When it last told a place.
    pub(crate) told_at: Instant,
    /// It said that it leaves: from where, and how.
    pub(crate) left: Option<(Point, Ending)>,
    /// From whom we have it that the operator excluded it: ourselves, or who passed it on.
    pub(crate) excluded_by: Option<VehicleId>,
    /// The last waypoint that it is known to have left for.
    pub(crate) going: Option<u16>,
    /// The last waypoint that it is known to have reached.
    pub(crate) reached: Option<u16>,
    /// Whose word it follows, as it said last.
    pub(crate) follows: usize,
}

impl<F: Copy + PartialEq> Swarm<F> {
    /// Whether we plan.
    pub fn is_master(&self) -> bool {
        self.config.me == self.config.master
    }
    /// Whether a plan is held.
    pub fn planned(&self) -> bool {
        !self.plan.slots.is_empty()
    }
    /// Whether our word is followed.
    pub fn is_leader(&self) -> bool {
        self.planned() && self.slot == self.leader
    }
    /// The slot that leads while nobody is lost.
    pub fn center(&self) -> usize {
        self.chart.center()
    }
    /// Who flies a slot.
    pub fn id_of(&self, slot: usize) -> Option<VehicleId> {
        self.plan.slots.get(slot).copied()
    }
    /// Which slot somebody flies.
    pub fn slot_of(&self, id: VehicleId) -> Option<usize> {
        // Next to what is written of whoever spoke.
        self.chart.slot_of(id, |slot| self.peers.get(slot).is_some_and(|peer| peer.id == id))
    }
    /// Members that are gone or lost.
    pub(crate) fn out(&self) -> Slots {
        self.left | self.silent | self.excluded
    }
    /// Bits of everybody but us who is waited for. On the ground all are, but whom the operator excluded.
    pub fn others(&self) -> Slots {
        let n = self.plan.slots.len();
        let all = if n == SWARM_MAX { Slots::MAX } else { (1 << n) - 1 };
        let out = if self.watches() { self.out() } else { self.excluded };
        all & !(1 << self.slot) & !out
    }
    /// Whether everybody but us is in `bits`.
    pub fn all(&self, bits: Slots) -> bool {
        bits & self.others() == self.others()
    }
    /// How many but us are not in `bits`.
    pub fn missing(&self, bits: Slots) -> u32 {
        (self.others() & !bits).count_ones()
    }
    /// The slots of those of a set.
    pub(crate) fn each(bits: Slots) -> impl Iterator<Item = usize> {
        (0..SWARM_MAX).filter(move |slot| bits >> slot & 1 == 1)
    }
    /// Our place in the order of take-off; nothing where a pilot takes us off.
    pub fn turn(&self) -> Option<usize> {
        self.chart.turn(self.slot)
    }
    /// Who takes off after us.
    pub(super) fn successor(&self) -> Option<VehicleId> {
        self.id_of(usize::from(*self.plan.take_off_order.get(self.turn()? + 1)?))
    }
    /// Those who take off before us, the last first.
    pub(super) fn predecessors(&self) -> impl Iterator<Item = usize> + Clone {
        self.plan.take_off_order[..self.turn().unwrap_or(0)].iter().rev().map(|&s| usize::from(s))
    }

    /// Whether the silence of others is judged in this state: from the take-off to the end of the flight. Who
    /// follows a pilot says nothing after the take-off, and nobody waits for it.
    pub(super) fn watches(&self) -> bool {
        match self.state {
            State::TakingOff(_) => true,
            State::SetupFinished | State::Flying(_) => !self.config.piloted_master,
            _ => false,
        }
    }

    /// Meets the members of a new plan.
    pub(super) fn meet(&mut self, now: Instant) {
        self.leader = self.center();
        let unheard = |&id: &VehicleId| Peer {
            id,
            heard_at: now,
            at: None,
            velocity_m_s: DVec3::ZERO,
            moved_at: now,
            holds_at: None,
            home: None,
            told_at: now,
            left: None,
            excluded_by: None,
            going: None,
            reached: None,
            follows: self.leader,
        };
        self.peers = self.plan.slots.iter().map(unheard).collect();
    }

    /// Nobody is silent yet: the watch begins.
    pub(super) fn begin_watch(&mut self, now: Instant) {
        self.peers.iter_mut().for_each(|p| p.heard_at = now);
    }

    /// A member spoke.
    pub(super) fn hear_member(
        &mut self,
        now: Instant,
        slot: usize,
        message: &Message,
    ) -> Result<(), Refused> {
        self.peers[slot].heard_at = now;
        if self.silent >> slot & 1 == 1 {
            self.silent &= !(1 << slot);
            self.elect();
        }
        match message {
            Message::Alive { at } => {
                // The first that it tells is where it stands.
                let peer = &mut self.peers[slot];
                if at.height_mm < STANDS_MM && peer.reached.is_none() {
                    peer.home = peer.home.or(Some(*at));
                }
                self.note_place(now, slot, *at);
            }
            Message::Following { at, .. } => self.note_place(now, slot, *at),
            Message::Holding { at } => {
                self.note_place(now, slot, *at);
                self.peers[slot].holds_at = Some(now);
            }
            Message::Leaving { at, how } => {
                self.note_place(now, slot, *at);
                self.peers[slot].left = Some((*at, *how));
                if self.left >> slot & 1 == 0 {
                    self.left |= 1 << slot;
                    self.news = Some((slot, "leaves: not waited for"));
                    self.elect();
                }
            }
            Message::Exclude { who } => {
                if slot != self.leader && self.id_of(slot) != Some(self.config.master) {
                    return Err(Refused::Stranger);
                }
                self.exclude(*who, self.plan.slots[slot]);
            }
            Message::LandHere { at, leader } => {
                // Of a leader whom we do not follow it is no order.
                self.land_here |= usize::from(*leader) == self.leader && !self.is_leader();
                self.peers[slot].left = Some((*at, Ending::Landing));
                self.left |= 1 << slot;
                self.elect();
            }
            _ => {}
        }
        Ok(())
    }

    /// A member is there.
    pub(crate) fn note_place(&mut self, now: Instant, slot: usize, at: Point) {
        let peer = &mut self.peers[slot];
        peer.told_at = now;
        let past_s = now.since(peer.moved_at).as_secs_f64();
        let way_m = peer.at.map_or(DVec3::ZERO, |before| self.chart.offset_m(before, at));
        if way_m.length() >= MOVED_M || past_s >= WORDS_APART_S {
            peer.velocity_m_s = if past_s < STALE_S { way_m / past_s.max(0.05) } else { DVec3::ZERO };
            (peer.at, peer.moved_at) = (Some(at), now);
        }
    }

    /// No longer waits for a member, on the word of `by`. Of ourselves, ends our flight.
    pub(crate) fn exclude(&mut self, who: VehicleId, by: VehicleId) {
        let Some(slot) = self.slot_of(who) else { return };
        if self.excluded >> slot & 1 == 0 {
            self.excluded |= 1 << slot;
            self.peers[slot].excluded_by = Some(by);
            self.news = Some((slot, "is excluded: not waited for"));
            self.elect();
        }
    }

    /// Lost, left and excluded members, ourselves too if we were excluded.
    pub fn absentees(&self) -> Absentees {
        let others = self.others();
        let absent = |slot: usize| {
            let peer = self.peers.get(slot)?;
            Some(Absent {
                id: self.id_of(slot)?,
                silent: self.silent >> slot & 1 == 1,
                leaves: peer.left.map(|(_, how)| how),
                excluded_by: peer.excluded_by,
                is_waited_for: others >> slot & 1 == 1,
            })
        };
        Self::each(self.out()).filter_map(absent).collect()
    }

    /// Who was silent for too long is lost. Each time that something is said, not at each input: a crowd
    /// hears much.
    pub(super) fn judge(&mut self, now: Instant) {
        if !self.watches() {
            return;
        }
        for slot in Self::each(self.others()) {
            if now >= self.peers[slot].heard_at + self.config.time_to_live {
                self.silent |= 1 << slot;
                self.news = Some((slot, "is silent: not waited for"));
            }
        }
        self.watch_progress(now);
        self.watch_landing(now);
        if self.state == State::TakingOff(TakeOff::Waiting) {
            self.survey_take_off(now);
        }
        self.elect();
    }

    /// The first of the order of succession that is still there. A pilot's swarm has no other leader than
    /// the pilot's aircraft.
    fn elect(&mut self) {
        let over = self.is_coming_down() || matches!(self.state, State::Aborted(_));
        if self.config.piloted_master || !self.planned() || over || self.land_here {
            return;
        }
        let center = self.center();
        let order = self.plan.take_off_order.iter().rev().map(|&s| usize::from(s));
        let gone = if self.watches() { self.out() } else { self.left | self.excluded };
        let leader = core::iter::once(center)
            .chain(order.filter(|&s| s != center))
            .find(|&s| s == self.slot || gone >> s & 1 == 0)
            .unwrap_or(self.slot);
        if leader != self.leader {
            self.leader = leader;
            self.new_leader = true;
            // Where the former leader lands is no place for a formation around this one.
            (self.land_at, self.land_by, self.turn_by) = (None, Instant::NEVER, Instant::NEVER);
        }
    }

    /// One line on who is out or leads now, once.
    pub(super) fn news(&mut self) -> Option<Text> {
        let (news, new_leader) = (self.news.take(), core::mem::take(&mut self.new_leader));
        let leader = self.id_of(self.leader)?;
        let leads = || match self.is_leader() {
            true => text!("this aircraft leads"),
            false => text!("{leader} leads"),
        };
        match news {
            Some((slot, what)) => {
                let who = self.id_of(slot)?;
                Some(text!("{who} {what}; {}", leads()))
            }
            None if new_leader => Some(leads()),
            None => None,
        }
    }

    /// Whether a lost or gone predecessor no longer keeps us from taking off: it is down, or where it may be
    /// is clear of our way.
    pub(super) fn makes_way(&self, slot: usize) -> bool {
        if self.out() >> slot & 1 == 0 {
            return false;
        }
        let (Some(at), Some(to)) = (self.at, self.route.first()) else { return false };
        let home = at.point();
        let above = Point { height_mm: self.first_height_mm(), ..home };
        let ways = [self.way(home, above), self.way(above, *to)];
        self.is_clear(slot, &ways)
    }
}
