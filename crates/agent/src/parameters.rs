//! Parameters on request, on the ground: the whole list read, or one set with proof; fence and rally points alike. One request at a time; what comes of it is
//! among the outputs, because no aircraft keeps the list.

use wingbeat_autopilot::dialect::MavMessage;
use wingbeat_autopilot::job::Failure;
use wingbeat_autopilot::mission::{Exchange, RegionKind};
use wingbeat_autopilot::parameter::{BadValue, Change, List, Listed, Name, Set};
use wingbeat_autopilot::{Progress, Transmit};
use wingbeat_geo::Instant;

use crate::region::{self, RegionReport};

/// What is asked of the autopilot.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterOrder {
    /// Read every parameter.
    ReadAll,
    /// Give the one of this name a value.
    Set {
        /// Its name.
        name: Name,
        /// The value, in the parameter's own unit.
        value: f32,
    },
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ParameterReport {
    /// One of the list.
    Listed(Listed),
    /// One of the list that cannot be read; it counts as received.
    Unreadable(BadValue),
    /// The parameter holds what was asked for.
    Set(Name, Change),
    /// Nothing is under way any more: all was received, or why not.
    Ended(Result<(), Failure>),
}

/// Reports of one input: a piece of a read has eight frames of them at most.
pub const REPORTS_MAX: usize = 16;

/// Where they are put.
pub(crate) type Reports = heapless::Vec<ParameterReport, REPORTS_MAX>;

/// The request that is under way.
#[allow(clippy::large_enum_variant, reason = "an aircraft has no heap, and one of these")]
pub(crate) enum Requested {
    List(List),
    Set(Set),
    Region(Exchange),
}

impl Requested {
    pub(crate) fn new(now: Instant, order: ParameterOrder) -> Self {
        match order {
            ParameterOrder::ReadAll => Self::List(List::new(now)),
            ParameterOrder::Set { name, value } => Self::Set(Set::new(now, name, value)),
        }
    }
    pub(crate) fn due(&self) -> Instant {
        match self {
            Self::List(list) => list.due(),
            Self::Set(set) => set.due(),
            Self::Region(job) => job.due(),
        }
    }
    /// Which list of points it is about, and whether it writes it.
    pub(crate) fn region(&self) -> Option<(RegionKind, bool)> {
        match self {
            Self::Region(job) => Some((job.kind(), job.writes())),
            Self::List(_) | Self::Set(_) => None,
        }
    }
    /// Takes a message of the autopilot.
    pub(crate) fn on_message(
        &mut self,
        now: Instant,
        message: &MavMessage,
        reports: &mut Reports,
        regions: &mut region::Reports,
    ) {
        match self {
            Self::List(list) => {
                let listed = list.on_message(now, message);
                let report =
                    listed.map(|one| one.map_or_else(ParameterReport::Unreadable, ParameterReport::Listed));
                // There is room for what one input brings.
                let _ = report.map(|report| reports.push(report));
            }
            Self::Set(set) => set.on_message(now, message),
            Self::Region(job) => {
                let event = job.on_message(now, message);
                let _ = event.map(|event| regions.push(RegionReport::Event(event)));
            }
        }
    }
    /// Continues. How it ended: in flight nothing is asked for.
    pub(crate) fn poll(
        &mut self,
        now: Instant,
        is_armed: bool,
        transmit: &mut Transmit<'_>,
    ) -> Option<Result<Option<(Name, Change)>, Failure>> {
        let progress = match self {
            _ if is_armed => Progress::Failed(Failure::Armed { what: "reading and setting" }),
            Self::List(list) => list.poll(now, transmit),
            Self::Set(set) => set.poll(now, transmit),
            Self::Region(job) => job.poll(now, transmit),
        };
        match (progress, &*self) {
            (Progress::Pending, _) => None,
            (Progress::Done, Self::List(_) | Self::Region(_)) => Some(Ok(None)),
            (Progress::Done, Self::Set(set)) => Some(Ok(set.change().map(|change| (set.name(), change)))),
            (Progress::Failed(failure), _) => Some(Err(failure)),
        }
    }
}
