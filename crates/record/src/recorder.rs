//! Next to the agent: writes what happens into blocks and hands each on when it is full, or in flight three quarters of a second old. It
//! waits for nothing unless its host wants it to.

use wingbeat_agent::{Agent, Input, Outputs, Sample, StateId};
use wingbeat_geo::{Duration, Instant, Position};

use crate::event::{Event, Plotted, outputs};
use crate::start::Start;
use crate::writer::{Blocks, Handover, Pace};

/// A block is handed on when it is as long as this, bytes.
const BLOCK_LEN: usize = 48 * 1024;
/// Or in flight, when its first record is as old as this: the rest of a second is for the card to take it. A bench that ends early is
/// flown again, and to wake its writer four times as often costs it speed.
const BLOCK_AGE: Duration = Duration::from_millis(750);
/// Between two samples of what is plotted at least, where the position is another: four times a second it comes, and a sample has
/// the time at which it came. Sampled by a period of its own it had times that were off by up to a quarter of a second.
const SAMPLE_LEAST: Duration = Duration::from_millis(200);
/// Where no other position came.
const SAMPLE_MOST: Duration = Duration::from_millis(300);

/// Records, one after another, and the agent time of the first.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Block {
    /// Agent time of the first record, microseconds.
    pub from_us: u64,
    /// The records.
    pub records: Vec<u8>,
    /// How many.
    pub count: u64,
}

impl Block {
    /// Adds a record.
    pub fn push(&mut self, last_us: &mut u64, now_us: u64, event: &Event<'_>) {
        if self.records.is_empty() {
            (self.from_us, *last_us) = (now_us, now_us);
        }
        event.write(now_us.saturating_sub(*last_us), &mut self.records);
        *last_us = now_us.max(*last_us);
        self.count += 1;
    }
}

/// Records what one agent does.
#[derive(Debug)]
pub struct Recorder {
    blocks: Blocks,
    name: String,
    block: Block,
    last_us: u64,
    lost: u64,
    sampled: Option<Sampled>,
}

/// The last sample.
#[derive(Clone, Copy, Debug)]
struct Sampled {
    at: Instant,
    state: StateId,
    position: Option<Position>,
    is_armed: bool,
}

impl Recorder {
    /// A recorder whose blocks go to a writer; `name` is the aircraft's.
    pub fn new(blocks: Blocks, name: &str) -> Self {
        Self { blocks, name: name.into(), block: Block::default(), last_us: 0, lost: 0, sampled: None }
    }

    /// An agent begins, before its first input.
    pub fn begin(&mut self, now: Instant, agent: &Agent) {
        let start = Start::new(&self.name, agent.origin()).to_json();
        self.push(now, &Event::Began(&start));
        self.sampled = None;
    }

    /// An input was handled.
    pub fn record(&mut self, now: Instant, input: &Input<'_>, agent: &Agent, out: &Outputs) {
        self.turn(now);
        self.push(now, &Event::of_input(input));
        outputs(out, |event| self.push(now, &event));
        let state = agent.view().state;
        let last = self.sampled;
        let is_other_state = last.is_some_and(|last| last.state != state);
        // What moves the aircraft comes from the autopilot.
        if !is_other_state
            && (!matches!(input, Input::Autopilot(_))
                || last.is_some_and(|last| now < last.at + SAMPLE_LEAST))
        {
            return;
        }
        let sample = agent.sample(now);
        let is_due = last.is_none_or(|last| {
            now >= last.at + SAMPLE_MOST || (last.position, last.is_armed) != (sample.position, sample.armed)
        });
        if is_due || is_other_state {
            let Sample { position, armed: is_armed, .. } = sample;
            self.sampled = Some(Sampled { at: now, state, position, is_armed });
            let name = state.to_string();
            self.push(now, &Event::Sample(Plotted::of(&sample, &name)));
        }
    }

    /// When what it has is old enough; never where its host waits for the disk.
    pub fn due(&self) -> Option<Instant> {
        let is_awaited = match self.blocks.pace() {
            Pace::Waits => false,
            Pace::Loses => !self.block.records.is_empty(),
        };
        is_awaited.then(|| Instant::from_micros(self.block.from_us) + BLOCK_AGE)
    }

    /// Hands on what is old enough.
    pub fn turn(&mut self, now: Instant) {
        if self.due().is_some_and(|due| now >= due) || self.block.records.len() >= BLOCK_LEN {
            self.hand_over();
        }
    }

    fn push(&mut self, now: Instant, event: &Event<'_>) {
        if self.lost > 0 && self.block.records.is_empty() {
            let lost = std::mem::take(&mut self.lost);
            self.block.push(&mut self.last_us, now.as_micros(), &Event::Lost(lost));
        }
        self.block.push(&mut self.last_us, now.as_micros(), event);
    }

    fn hand_over(&mut self) {
        // As much room as the last one had, at once.
        let next = Block { records: Vec::with_capacity(self.block.records.capacity()), ..Block::default() };
        let block = std::mem::replace(&mut self.block, next);
        if let Handover::Lost(count) = self.blocks.hand_over(block) {
            self.lost += count;
        }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if !self.block.records.is_empty() {
            self.hand_over();
        }
    }
}
