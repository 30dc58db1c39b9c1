//! The operator's commands and what became of them, per aircraft. It decides, nothing more: what is to
//! be sent or no longer sent is returned as [`Order`]s for the owner to carry out.
//!
//! Two lanes per aircraft. In each the newest command replaces the older; a recovery command also ends what is still
//! being sent in the other lane, so that nothing older can arrive after it. Exclusions have a lane each: each
//! excluded member has a lane of its own.
//!
//! ```text
//! Sending ──accepted──▶ Accepted ──effect read back──▶ EffectSeen
//!    │  │                        └──no effect in time──▶ Expired
//!    │  └──no answer in time──▶ Expired ─ ─ seen later ─ ─ ▶ EffectSeen
//!    └──refused, overtaken, not commandable──▶ Failed
//! ```

use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use wingbeat_api::{
    Command, CommandProgress, CommandStage, FleetCommand, FleetCommandRequest, FleetCommandResult, VehicleId,
    VehicleOutcome,
};

/// Shown to the consoles.
const SHOWN: usize = 16;
/// Ids that are remembered so that a repeated request is not a second command.
const REMEMBERED: usize = 256;

/// Which of an aircraft's two queues a command takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Lane {
    /// Setup, start, engage: sent until answered.
    Normal,
    /// A command that recovers: sent until the effect is seen.
    Recovery,
    /// Exclude this member: sent until answered. Each has a lane of its own, because it concerns the swarm: it ends
    /// nothing that the aircraft does, and nothing ends it.
    Exclusion(VehicleId),
}

/// The lane of a command.
pub(crate) fn lane(command: Command) -> Lane {
    match command {
        Command::Exclude { member } => Lane::Exclusion(member),
        command if command.recovers() => Lane::Recovery,
        _ => Lane::Normal,
    }
}

fn lane_of(entry: &FleetCommand) -> Lane {
    lane(entry.command)
}

/// How long a command is sent before it expires. An operator who presses *Start* must not be surprised
/// by it half a minute later; one who presses *Land* wants it to arrive as long as it can.
pub(crate) fn time_to_live(command: Command) -> Duration {
    match lane(command) {
        Lane::Normal | Lane::Exclusion(_) => Duration::from_secs(10),
        Lane::Recovery => Duration::from_secs(60),
    }
}

/// Time within which the effect of an accepted command is to be seen. An aircraft that was restarted in
/// the meantime has no record of the command, and reports no end of it.
fn effect_within(command: Command) -> Duration {
    match command {
        // Preparing, arming, climbing and waiting for all others.
        Command::Setup | Command::SetParameters => Duration::from_secs(300),
        Command::Start
        | Command::Hold
        | Command::Return
        | Command::Land
        | Command::Resume
        | Command::RecoverControl
        | Command::Engage
        | Command::Exclude { .. } => Duration::from_secs(60),
    }
}

/// The next step of the operator after a command whose result is not known.
pub(crate) const NEXT_STEP: &str = "check the state of the aircraft, then send the command again";

/// A delivery reports its own end; this is added to its time limit.
const GRACE: Duration = Duration::from_secs(5);

/// The aircraft that a command addresses, in a refusal.
pub(crate) fn addressed(vehicles: &[String]) -> String {
    match vehicles {
        [] => "all aircraft".to_owned(),
        [one] => format!("aircraft {one:?}"),
        some => format!("{} aircraft", some.len()),
    }
}

/// What the owner has to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    /// Begin to send the command to the aircraft.
    Send { id: String, command: Command, vehicle: String },
    /// Stop sending what is in that lane of the aircraft.
    Stop { vehicle: String, lane: Lane },
}

/// A command that came before under the same id.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Known {
    /// The same command: answer as the first time.
    Same { vehicles: Vec<String> },
    /// Another one under the same id: what came first, and for which aircraft (none are all).
    Different { command: Command, asked: Vec<String> },
}

/// A command under whose id another request is compared.
struct RememberedCommand {
    id: String,
    command: Command,
    asked: Vec<String>,
    vehicles: Vec<String>,
}

/// Every command that is remembered.
#[derive(Default)]
pub(crate) struct Ledger {
    commands: Vec<FleetCommand>,
    remembered: VecDeque<RememberedCommand>,
}

impl Ledger {
    /// What came before under this id.
    pub(crate) fn known(&self, request: &FleetCommandRequest) -> Option<Known> {
        let remembered = self.remembered.iter().find(|remembered| remembered.id == request.id)?;
        Some(if remembered.command == request.command && remembered.asked == request.vehicles {
            Known::Same { vehicles: remembered.vehicles.clone() }
        } else {
            Known::Different { command: remembered.command, asked: remembered.asked.clone() }
        })
    }

    /// Takes a new command. `targets` are the aircraft in question, each with the reason why it cannot
    /// be commanded, if there is one.
    pub(crate) fn admit(
        &mut self,
        request: &FleetCommandRequest,
        time_ms: u64,
        targets: Vec<(String, Result<(), String>)>,
    ) -> Vec<Order> {
        if self.remembered.len() == REMEMBERED {
            self.remembered.pop_front();
        }
        self.remembered.push_back(RememberedCommand {
            id: request.id.clone(),
            command: request.command,
            asked: request.vehicles.clone(),
            vehicles: targets.iter().map(|(vehicle, _)| vehicle.clone()).collect(),
        });
        let mut orders = Vec::new();
        let results = targets.into_iter().map(|target| self.aim(request, target, &mut orders)).collect();
        self.commands.push(FleetCommand {
            id: request.id.clone(),
            command: request.command,
            time_ms,
            note: String::new(),
            by: String::new(),
            results,
        });
        self.forget_finished();
        orders
    }

    /// Keeps which user gave a command.
    pub(crate) fn attribute(&mut self, id: &str, by: String) {
        if let Some(entry) = self.commands.iter_mut().find(|entry| entry.id == id) {
            entry.by = by;
        }
    }

    /// Keeps why a command was given; false where it is none that is shown.
    pub(crate) fn note(&mut self, id: &str, note: String) -> bool {
        let found = self.commands.iter_mut().find(|entry| entry.id == id);
        found.map(|entry| entry.note = note).is_some()
    }

    /// The first line about one aircraft of a new command, after the oldest line made room for it.
    fn aim(
        &mut self,
        request: &FleetCommandRequest,
        (vehicle, commandable): (String, Result<(), String>),
        orders: &mut Vec<Order>,
    ) -> FleetCommandResult {
        let command = request.command;
        let failed = |detail: String| (VehicleOutcome::Failed, detail);
        let (outcome, detail) = match (commandable, lane(command), self.recovering(&vehicle)) {
            (Err(reason), _, _) => failed(reason),
            (Ok(()), Lane::Normal, Some(recovery)) => failed(format!("{} is still being sent", recovery)),
            (Ok(()), mine, _) => {
                let overtaken: &[Lane] = match mine {
                    Lane::Normal => &[Lane::Normal],
                    Lane::Recovery => &[Lane::Normal, Lane::Recovery],
                    Lane::Exclusion(_) => &[mine],
                };
                for &overtaken in overtaken {
                    if self.overtake(&vehicle, overtaken, command) {
                        orders.push(Order::Stop { vehicle: vehicle.clone(), lane: overtaken });
                    }
                }
                orders.push(Order::Send { id: request.id.clone(), command, vehicle: vehicle.clone() });
                (VehicleOutcome::Sending, "sending".to_owned())
            }
        };
        FleetCommandResult { vehicle, outcome, detail }
    }

    /// Ends what is being sent in a lane; true if there was something.
    fn overtake(&mut self, vehicle: &str, which: Lane, by: Command) -> bool {
        self.end_sending(vehicle, which, &format!("overtaken by {}", by))
    }

    fn end_sending(&mut self, vehicle: &str, which: Lane, reason: &str) -> bool {
        let mut any = false;
        for entry in self.commands.iter_mut().filter(|entry| lane_of(entry) == which) {
            for result in entry.results.iter_mut().filter(|result| result.vehicle == vehicle) {
                if is_being_sent(which, result.outcome) {
                    result.outcome = VehicleOutcome::Failed;
                    reason.clone_into(&mut result.detail);
                    any = true;
                }
            }
        }
        any
    }

    /// The aircraft must not be commanded any more: ends all its lanes.
    pub(crate) fn give_up(&mut self, vehicle: &str, reason: &str) -> Vec<Order> {
        let lanes: BTreeSet<Lane> = self.commands.iter().map(lane_of).collect();
        lanes
            .into_iter()
            .filter(|lane| self.end_sending(vehicle, *lane, reason))
            .map(|lane| Order::Stop { vehicle: vehicle.to_owned(), lane })
            .collect()
    }

    /// The recovery command that is still being sent to an aircraft.
    pub(crate) fn recovering(&self, vehicle: &str) -> Option<Command> {
        let entries = self.commands.iter().rev().filter(|entry| lane_of(entry) == Lane::Recovery);
        entries.into_iter().find_map(|entry| {
            let mut results = entry.results.iter();
            let sent = results.any(|r| r.vehicle == vehicle && is_being_sent(Lane::Recovery, r.outcome));
            sent.then_some(entry.command)
        })
    }

    /// The newest recovery command that was for every aircraft and is younger than its time to live: an
    /// aircraft whose first status arrives only now is meant too.
    pub(crate) fn for_newcomer(&mut self, vehicle: &str, time_ms: u64) -> Option<Order> {
        let entry = self.commands.iter_mut().rfind(|entry| lane_of(entry) == Lane::Recovery)?;
        let to_all =
            self.remembered.iter().any(|remembered| remembered.id == entry.id && remembered.asked.is_empty());
        let age = Duration::from_millis(time_ms.saturating_sub(entry.time_ms));
        if !to_all || age >= time_to_live(entry.command) || entry.results.iter().any(|r| r.vehicle == vehicle)
        {
            return None;
        }
        let (outcome, detail) =
            (VehicleOutcome::Sending, "sending, first status received after the command".to_owned());
        entry.results.push(FleetCommandResult { vehicle: vehicle.to_owned(), outcome, detail });
        Some(Order::Send { id: entry.id.clone(), command: entry.command, vehicle: vehicle.to_owned() })
    }

    /// What a delivery reports. True if it changed something.
    pub(crate) fn delivered(
        &mut self,
        id: &str,
        vehicle: &str,
        outcome: VehicleOutcome,
        detail: String,
    ) -> bool {
        let Some(result) = self.result(id, vehicle) else { return false };
        let may = match result.outcome {
            VehicleOutcome::Sending => true,
            // A recovery command continues after its first acceptance; what comes then is only its end.
            VehicleOutcome::Accepted => matches!(outcome, VehicleOutcome::Failed | VehicleOutcome::Expired),
            VehicleOutcome::EffectSeen | VehicleOutcome::Failed | VehicleOutcome::Expired => false,
        };
        if may {
            *result = FleetCommandResult { vehicle: vehicle.to_owned(), outcome, detail };
        }
        may
    }

    /// What the aircraft's status reports of its last commands. A status that lists the command proves
    /// that it arrived, even where the answer was lost.
    pub(crate) fn progressed(
        &mut self,
        vehicle: &str,
        progress: &[CommandProgress],
        orders: &mut Vec<Order>,
    ) -> bool {
        let mut changed = false;
        for step in progress {
            let Some(result) = self.result(&step.id, vehicle) else { continue };
            let outcome = match step.stage {
                CommandStage::Accepted => VehicleOutcome::Accepted,
                CommandStage::EffectSeen => VehicleOutcome::EffectSeen,
                CommandStage::Failed => VehicleOutcome::Failed,
            };
            let may = match result.outcome {
                VehicleOutcome::Sending | VehicleOutcome::Accepted => true,
                VehicleOutcome::Expired => outcome == VehicleOutcome::EffectSeen,
                VehicleOutcome::EffectSeen | VehicleOutcome::Failed => false,
            };
            if !may || (result.outcome == outcome && result.detail == step.detail) {
                continue;
            }
            let lane = lane(step.command);
            let was_sent = is_being_sent(lane, result.outcome);
            result.outcome = outcome;
            step.detail.clone_into(&mut result.detail);
            if was_sent && !is_being_sent(lane, outcome) {
                orders.push(Order::Stop { vehicle: vehicle.to_owned(), lane });
            }
            changed = true;
        }
        changed
    }

    /// Ends commands whose result was not seen in time, so that none is shown as under way for ever. Returns
    /// the deliveries to stop.
    pub(crate) fn expire(&mut self, time_ms: u64) -> Vec<Order> {
        let mut orders = Vec::new();
        for entry in &mut self.commands {
            let (command, lane) = (entry.command, lane_of(entry));
            let age = Duration::from_millis(time_ms.saturating_sub(entry.time_ms));
            // An aircraft that is first received within this time is sent the command for as long again.
            let sent_for = 2 * time_to_live(command) + GRACE;
            let accepted_for = sent_for.max(effect_within(command));
            for result in &mut entry.results {
                let (limit, what) = match result.outcome {
                    VehicleOutcome::Sending => (sent_for, "not answered"),
                    VehicleOutcome::Accepted => (accepted_for, "accepted, but its effect was not seen"),
                    VehicleOutcome::EffectSeen | VehicleOutcome::Failed | VehicleOutcome::Expired => continue,
                };
                if age < limit {
                    continue;
                }
                if is_being_sent(lane, result.outcome) {
                    orders.push(Order::Stop { vehicle: result.vehicle.clone(), lane });
                }
                result.outcome = VehicleOutcome::Expired;
                result.detail = format!("{what} within {} s; {NEXT_STEP}", limit.as_secs());
            }
        }
        orders
    }

    /// The command that has this id, while it is remembered with what became of it.
    pub(crate) fn command_of(&self, id: &str) -> Option<Command> {
        self.commands.iter().find(|entry| entry.id == id).map(|entry| entry.command)
    }

    /// The last commands, newest last.
    pub(crate) fn shown(&self) -> Vec<FleetCommand> {
        self.commands[self.commands.len().saturating_sub(SHOWN)..].to_vec()
    }

    fn result(&mut self, id: &str, vehicle: &str) -> Option<&mut FleetCommandResult> {
        let entry = self.commands.iter_mut().find(|entry| entry.id == id)?;
        entry.results.iter_mut().find(|result| result.vehicle == vehicle)
    }

    /// Drops the oldest commands that nothing is being sent of. What is being sent is at most one per
    /// lane and aircraft, so that the list is bounded by the fleet.
    fn forget_finished(&mut self) {
        let mut too_many = self.commands.len().saturating_sub(SHOWN);
        self.commands.retain(|entry| {
            let sent = entry.results.iter().any(|result| is_being_sent(lane_of(entry), result.outcome));
            let drop = too_many > 0 && !sent;
            too_many -= usize::from(drop);
            !drop
        });
    }
}

/// Whether a delivery is still at work: a recovery command is repeated after it was accepted.
fn is_being_sent(lane: Lane, outcome: VehicleOutcome) -> bool {
    outcome == VehicleOutcome::Sending || (lane == Lane::Recovery && outcome == VehicleOutcome::Accepted)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(id: &str, command: Command) -> FleetCommandRequest {
        FleetCommandRequest { id: id.to_owned(), command, vehicles: Vec::new() }
    }

    fn all(names: &[&str]) -> Vec<(String, Result<(), String>)> {
        names.iter().map(|name| ((*name).to_owned(), Ok(()))).collect()
    }

    fn outcome(ledger: &Ledger, id: &str, vehicle: &str) -> (VehicleOutcome, String) {
        let shown = ledger.shown();
        let entry = shown.iter().find(|entry| entry.id == id).expect("the command is shown");
        let result =
            entry.results.iter().find(|result| result.vehicle == vehicle).expect("the aircraft is in it");
        (result.outcome, result.detail.clone())
    }

    fn progress(id: &str, command: Command, stage: CommandStage) -> CommandProgress {
        CommandProgress { id: id.to_owned(), command, stage, detail: "from the aircraft".to_owned() }
    }

    fn send(id: &str, command: Command, vehicle: &str) -> Order {
        Order::Send { id: id.to_owned(), command, vehicle: vehicle.to_owned() }
    }

    fn stop(vehicle: &str, lane: Lane) -> Order {
        Order::Stop { vehicle: vehicle.to_owned(), lane }
    }

    #[test]
    fn the_newest_recovery_command_wins_and_ends_what_is_still_sent() {
        let mut ledger = Ledger::default();
        assert_eq!(
            ledger.admit(&request("s", Command::Start), 0, all(&["a"])),
            [send("s", Command::Start, "a")]
        );
        let orders = ledger.admit(&request("h", Command::Hold), 1, all(&["a"]));
        assert_eq!(orders, [stop("a", Lane::Normal), send("h", Command::Hold, "a")]);
        ledger.delivered("h", "a", VehicleOutcome::Accepted, String::new());
        let orders = ledger.admit(&request("l", Command::Land), 2, all(&["a"]));
        assert_eq!(orders, [stop("a", Lane::Recovery), send("l", Command::Land, "a")]);
        assert_eq!(outcome(&ledger, "s", "a"), (VehicleOutcome::Failed, "overtaken by hold".to_owned()));
        assert_eq!(outcome(&ledger, "h", "a"), (VehicleOutcome::Failed, "overtaken by land".to_owned()));
        assert_eq!(outcome(&ledger, "l", "a").0, VehicleOutcome::Sending);
        assert!(
            !ledger.delivered("h", "a", VehicleOutcome::Accepted, String::new()),
            "a late answer changes nothing"
        );
    }

    #[test]
    fn nothing_is_engaged_while_a_recovery_is_being_sent() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("r", Command::RecoverControl), 0, all(&["a"]));
        assert_eq!(ledger.admit(&request("e", Command::Engage), 1, all(&["a"])), []);
        assert_eq!(
            outcome(&ledger, "e", "a"),
            (VehicleOutcome::Failed, "recover control is still being sent".to_owned())
        );
        assert_eq!(outcome(&ledger, "r", "a").0, VehicleOutcome::Sending);
    }

    #[test]
    fn a_recovery_command_is_sent_until_its_effect_is_seen() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("l", Command::Land), 0, all(&["a"]));
        let mut orders = Vec::new();
        assert!(ledger.progressed("a", &[progress("l", Command::Land, CommandStage::Accepted)], &mut orders));
        assert_eq!((orders.as_slice(), ledger.recovering("a")), ([].as_slice(), Some(Command::Land)));
        assert!(ledger.progressed(
            "a",
            &[progress("l", Command::Land, CommandStage::EffectSeen)],
            &mut orders
        ));
        assert_eq!((orders, ledger.recovering("a")), (vec![stop("a", Lane::Recovery)], None));
        assert_eq!(outcome(&ledger, "l", "a"), (VehicleOutcome::EffectSeen, "from the aircraft".to_owned()));
    }

    #[test]
    fn an_accepted_setup_is_not_sent_again_and_ends_with_its_effect() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("s", Command::Setup), 0, all(&["a"]));
        let mut orders = Vec::new();
        ledger.progressed("a", &[progress("s", Command::Setup, CommandStage::Accepted)], &mut orders);
        assert_eq!(orders, [stop("a", Lane::Normal)], "the answer was lost, the status proves the arrival");
        orders.clear();
        ledger.progressed("a", &[progress("s", Command::Setup, CommandStage::EffectSeen)], &mut orders);
        assert_eq!((orders.len(), outcome(&ledger, "s", "a").0), (0, VehicleOutcome::EffectSeen));
    }

    #[test]
    fn expired_is_final_but_for_an_effect_seen_late() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("l", Command::Land), 0, all(&["a"]));
        assert!(ledger.delivered("l", "a", VehicleOutcome::Expired, "no answer".to_owned()));
        let mut orders = Vec::new();
        assert!(!ledger.progressed("a", &[progress("l", Command::Land, CommandStage::Failed)], &mut orders));
        assert!(ledger.progressed(
            "a",
            &[progress("l", Command::Land, CommandStage::EffectSeen)],
            &mut orders
        ));
        assert_eq!(orders, [], "nothing was being sent");
    }

    #[test]
    fn an_accepted_command_whose_effect_is_not_seen_expires_with_a_next_step() {
        for (command, after_ms) in
            [(Command::Start, 60_000), (Command::Setup, 300_000), (Command::Land, 125_000)]
        {
            let mut ledger = Ledger::default();
            ledger.admit(&request("c", command), 1_000, all(&["a", "b"]));
            let accepted = [progress("c", command, CommandStage::Accepted)];
            ledger.progressed("a", &accepted, &mut Vec::new());
            ledger.delivered("c", "b", VehicleOutcome::Failed, "no mission".to_owned());
            assert_eq!(ledger.expire(1_000 + after_ms - 1), []);
            assert_eq!(outcome(&ledger, "c", "a").0, VehicleOutcome::Accepted);
            let stopped = ledger.expire(1_000 + after_ms);
            assert_eq!(stopped.len(), usize::from(command == Command::Land), "its repetition ends");
            let detail = format!(
                "accepted, but its effect was not seen within {} s; check the state of the aircraft, then send \
                 the command again",
                after_ms / 1_000
            );
            assert_eq!(outcome(&ledger, "c", "a"), (VehicleOutcome::Expired, detail));
            assert_eq!(outcome(&ledger, "c", "b").0, VehicleOutcome::Failed);
            let seen = [progress("c", command, CommandStage::EffectSeen)];
            assert!(ledger.progressed("a", &seen, &mut Vec::new()), "later than expected");
            assert_eq!(outcome(&ledger, "c", "a").0, VehicleOutcome::EffectSeen);
        }
    }

    #[test]
    fn a_command_without_a_delivery_does_not_stay_under_way() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("e", Command::Engage), 0, all(&["a"]));
        assert_eq!(ledger.expire(24_999), []);
        assert_eq!(ledger.expire(25_000), [stop("a", Lane::Normal)]);
        let (outcome, detail) = outcome(&ledger, "e", "a");
        assert_eq!(outcome, VehicleOutcome::Expired);
        assert!(detail.starts_with("not answered within 25 s; check"), "{detail}");
    }

    #[test]
    fn the_same_id_is_the_same_command() {
        let mut ledger = Ledger::default();
        assert_eq!(ledger.known(&request("x", Command::Hold)), None);
        ledger.admit(&request("x", Command::Hold), 0, all(&["a"]));
        let same = Known::Same { vehicles: vec!["a".to_owned()] };
        assert_eq!(ledger.known(&request("x", Command::Hold)), Some(same));
        let different = Known::Different { command: Command::Hold, asked: vec![] };
        assert_eq!(ledger.known(&request("x", Command::Land)), Some(different));
    }

    #[test]
    fn land_all_includes_an_aircraft_first_received_afterwards() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("l", Command::Land), 1000, all(&["a"]));
        assert_eq!(ledger.for_newcomer("a", 2000), None, "it has it");
        assert_eq!(ledger.for_newcomer("b", 60_999), Some(send("l", Command::Land, "b")));
        assert_eq!(ledger.for_newcomer("c", 61_000), None, "expired");
        let only_a = FleetCommandRequest { vehicles: vec!["a".to_owned()], ..request("r", Command::Return) };
        ledger.admit(&only_a, 3000, all(&["a"]));
        assert_eq!(ledger.for_newcomer("d", 4000), None, "the newest was for one");
    }

    #[test]
    fn what_is_being_sent_is_never_forgotten() {
        let mut ledger = Ledger::default();
        ledger.admit(&request("land a", Command::Land), 0, all(&["a"]));
        for i in 0..100 {
            ledger.admit(&request(&format!("hold b {i}"), Command::Hold), 1, all(&["b"]));
        }
        assert_eq!(ledger.recovering("a"), Some(Command::Land));
        assert_eq!(ledger.shown().len(), SHOWN);
        assert_eq!(ledger.commands.len(), SHOWN, "finished ones are dropped first");
        assert!(ledger.delivered("land a", "a", VehicleOutcome::Accepted, String::new()));
    }

    #[test]
    fn exclusions_are_independent_of_other_commands_and_of_each_other() {
        let mut ledger = Ledger::default();
        let exclude = |id: &str, member| request(id, Command::Exclude { member });
        let (b, c) = (VehicleId(0xb), VehicleId(0xc));
        let sent = |id: &str, member| send(id, Command::Exclude { member }, "a");
        ledger.admit(&request("s", Command::Setup), 0, all(&["a"]));
        assert_eq!(ledger.admit(&exclude("x", b), 1, all(&["a"])), [sent("x", b)]);
        assert_eq!(ledger.admit(&exclude("y", c), 2, all(&["a"])), [sent("y", c)]);
        assert_eq!(
            ledger.admit(&exclude("z", b), 3, all(&["a"])),
            [stop("a", Lane::Exclusion(b)), sent("z", b)],
            "the same member again"
        );
        let orders = ledger.admit(&request("l", Command::Land), 4, all(&["a"]));
        assert_eq!(orders, [stop("a", Lane::Normal), send("l", Command::Land, "a")]);
        assert_eq!(outcome(&ledger, "y", "a").0, VehicleOutcome::Sending);
        assert_eq!(
            ledger.admit(&exclude("v", c), 5, all(&["a"])).len(),
            2,
            "nor does it wait for a recovery"
        );
        let different = Known::Different { command: Command::Exclude { member: c }, asked: vec![] };
        assert_eq!(ledger.known(&exclude("y", b)), Some(different), "another member is another command");
        let lanes = [Lane::Recovery, Lane::Exclusion(b), Lane::Exclusion(c)];
        assert_eq!(ledger.give_up("a", "two aircraft"), lanes.map(|lane| stop("a", lane)));
    }

    #[test]
    fn a_duplicate_is_no_longer_sent_to_in_both_lanes() {
        let mut ledger = Ledger::default();
        let reason = "two aircraft";
        ledger.admit(
            &request("l", Command::Land),
            0,
            vec![("a".to_owned(), Err(reason.to_owned())), ("b".to_owned(), Ok(()))],
        );
        assert_eq!(outcome(&ledger, "l", "a"), (VehicleOutcome::Failed, reason.to_owned()));
        assert_eq!(ledger.give_up("b", reason), [stop("b", Lane::Recovery)]);
        assert_eq!(outcome(&ledger, "l", "b"), (VehicleOutcome::Failed, reason.to_owned()));
    }
}
