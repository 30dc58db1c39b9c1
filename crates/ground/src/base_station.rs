//! A base station of satellite navigation: frames of RTCM 3 from its port, broadcast once to all aircraft as they come.
//!
//! Nothing is kept or repeated: a frame that cannot leave is counted, and the next one is newer.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use wingbeat_api::{BaseStation as Shown, Refusal};
use wingbeat_geo::{Instant, Rate};
use wingbeat_link::{Endpoint, Link, LinkEvent};
use wingbeat_radio::{Clock, SendError};
use wingbeat_wire::{Corrections, RtcmFinder};

/// What is known of a base station, for its task and for the owner of the picture.
#[derive(Clone, Debug)]
pub(crate) struct BaseStation(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    source: Endpoint,
    clock: Clock,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    problem: Option<String>,
    finder: RtcmFinder,
    at: Option<Instant>,
    rate: Rate,
    frames: u64,
    /// Frames that did not leave, by reason.
    unsent: BTreeMap<&'static str, u64>,
}

impl BaseStation {
    pub(crate) fn new(source: Endpoint, clock: Clock) -> Self {
        let state = State { problem: Some("the port is not open yet".to_owned()), ..State::default() };
        Self(Arc::new(Inner { source, clock, state: Mutex::new(state) }))
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens its port, for ever.
    pub(crate) fn open(&self) -> Link {
        Link::spawn(self.0.source.clone())
    }

    /// Broadcasts each frame that is whole now.
    pub(crate) fn take(
        &self,
        event: LinkEvent,
        mut broadcast: impl FnMut(&Corrections) -> Result<(), SendError>,
    ) {
        let (now, source) = (self.0.clock.now(), &self.0.source);
        let mut guard = self.lock();
        let State { problem, finder, at, rate, frames, unsent } = &mut *guard;
        match event {
            LinkEvent::Up => {
                tracing::info!(%source, "the base station's port is open");
                // What came before is not continued.
                finder.restart();
                *problem = None;
            }
            LinkEvent::Down { reason } => {
                // A link names what it is made for.
                let reason = reason.strip_prefix("autopilot ").unwrap_or(&reason);
                tracing::warn!("base station {reason}");
                *problem = Some(reason.to_owned());
            }
            LinkEvent::Bytes(bytes) => finder.push(&bytes, |corrections| match broadcast(corrections) {
                Ok(()) => {
                    *at = Some(now);
                    *frames += 1;
                    rate.add(now, corrections.frame.len() as u32);
                }
                Err(error) => *unsent.entry(error.name()).or_default() += 1,
            }),
        }
    }

    /// What an operator sees of it.
    pub(crate) fn shown(&self) -> Shown {
        let (now, state) = (self.0.clock.now(), self.lock());
        let RtcmFinder { damaged, garbage_bytes, too_long, .. } = state.finder;
        let found = [("damaged", damaged), ("garbage_bytes", garbage_bytes), ("too_long", too_long)];
        let unsent = state.unsent.iter().map(|(reason, count)| (*reason, *count));
        let refusal = |(reason, count): (&str, u64)| Refusal { reason: reason.to_owned(), count };
        Shown {
            source: self.0.source.to_string(),
            problem: state.problem.clone(),
            age_ms: state.at.map(|at| now.since(at).as_millis() as u64),
            bytes_s: state.rate.per_second(now),
            frames: state.frames,
            refused: found.into_iter().chain(unsent).filter(|(_, count)| *count > 0).map(refusal).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_wire::{Class, rtcm_frame};

    #[test]
    fn frames_leave_as_they_come_and_what_does_not_is_counted_by_reason() {
        let source = "tcp:127.0.0.1:2101".parse::<Endpoint>().expect("an endpoint");
        let base = BaseStation::new(source, Clock::real_time());
        assert_eq!(base.shown().problem.as_deref(), Some("the port is not open yet"));
        base.take(LinkEvent::Up, |_| Ok(()));
        let frame = rtcm_frame(&[1; 100]).expect("a frame").frame;
        let mut damaged = frame.clone();
        damaged[50] ^= 1;
        let stream = [&frame[..], b"$GNGGA\r\n", &damaged, &frame, &frame].concat();
        let (mut sent, mut left) = (0, 2);
        for piece in stream.chunks(33) {
            base.take(LinkEvent::Bytes(piece.to_vec()), |corrections| {
                assert_eq!(corrections.frame, frame);
                sent += 1;
                left -= 1;
                if left >= 0 { Ok(()) } else { Err(SendError::OverBudget(Class::Corrections)) }
            });
        }
        let shown = base.shown();
        assert_eq!((sent, shown.frames, shown.bytes_s), (3, 2, 212));
        assert!(shown.problem.is_none() && shown.age_ms.is_some(), "{shown:?}");
        let refused: Vec<_> = shown.refused.iter().map(|r| (r.reason.as_str(), r.count)).collect();
        assert_eq!(refused, [("damaged", 1), ("garbage_bytes", 8 + 106), ("over_budget_corrections", 1)]);

        // A frame whose rest was lost with the connection holds up none of the next.
        base.take(LinkEvent::Bytes(frame[..60].to_vec()), |_| Ok(()));
        let reason = "autopilot tcp:127.0.0.1:2101: found it closed, expected an open connection".to_owned();
        base.take(LinkEvent::Down { reason }, |_| Ok(()));
        let problem = base.shown().problem.expect("a problem");
        assert_eq!(problem, "tcp:127.0.0.1:2101: found it closed, expected an open connection");
        base.take(LinkEvent::Up, |_| Ok(()));
        base.take(LinkEvent::Bytes(frame.to_vec()), |_| Ok(()));
        assert_eq!(base.shown().frames, 3);
    }
}
