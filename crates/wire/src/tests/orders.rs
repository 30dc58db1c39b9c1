//! Which sender may send what, and orders that are passed on as the console sealed them.

use super::*;

const AIRCRAFT: VehicleId = VehicleId(1);
const CONSOLES: [(VehicleId, Role, u8); 3] =
    [(VehicleId(97), Role::Viewer, 7), (VehicleId(98), Role::Safety, 8), (VehicleId(99), Role::Operator, 9)];

fn with_consoles() -> Roster {
    // The second is the leader of the command that the examples pass on.
    let mut roster = roster([(AIRCRAFT, 1), (VehicleId(0x0200_0000_0001), 1)]);
    for (id, role, secret) in CONSOLES {
        roster.add(id, role, &signer(secret).public_key().unwrap()).unwrap();
    }
    roster
}

/// What a receiver reads of this message, signed by its sender.
fn received(from: VehicleId, secret: u8, message: Message) -> Result<Message, Refused> {
    let mut draft = Datagram { from, counter: COUNTER, flight: 7, message }.draft().unwrap();
    let (roster, bytes) = (with_consoles(), signer(secret).seal(&mut draft));
    let mut read = Datagram::blank();
    roster.open(bytes)?.read_into(&mut read)?;
    Ok(read.message)
}

#[test]
fn each_kind_is_taken_from_the_roles_that_may_send_it_alone() {
    let commands = [Command::Setup, Command::Hold, Command::RecoverControl, EXCLUDE];
    let orders = commands.map(|command| ("order", Message::Order(order(command, Addressees::All))));
    for (name, message) in examples().into_iter().chain(orders) {
        let (is_order, is_recovery) = match &message {
            Message::Order(order) => (true, order.command.recovers()),
            _ => (false, false),
        };
        let is_exclusion = matches!(message, Message::Exclude { .. });
        let is_correction = matches!(message, Message::Corrections(_));
        let senders = [(AIRCRAFT, Role::Aircraft, 1)].into_iter().chain(CONSOLES);
        for (from, role, secret) in senders {
            let is_permitted = match role {
                Role::Aircraft => !is_order && !is_exclusion && !is_correction,
                Role::Operator => is_order || is_correction,
                Role::Safety => is_recovery,
                Role::Viewer => false,
            };
            let expected = if is_permitted { Ok(message.clone()) } else { Err(Refused::NotPermitted) };
            assert_eq!(received(from, secret, message.clone()), expected, "{name} of {}", role.name());
        }
    }
}

/// Without keys no sender is told from another.
#[test]
fn without_keys_each_may_send_everything() {
    for message in [Message::Exclude { member: AIRCRAFT }, Message::Order(order(EXCLUDE, Addressees::All))] {
        let mut draft = Datagram { message, ..Datagram::blank() }.draft().unwrap();
        let bytes = Signer::insecure().seal(&mut draft).to_vec();
        let roster = Roster::insecure();
        let opened = roster.open(&bytes).unwrap();
        assert_eq!((opened.role(), opened.read_into(&mut Datagram::blank())), (None, Ok(())));
    }
}

#[test]
fn an_order_that_is_passed_on_is_the_consoles_byte_for_byte() {
    let (console, _, secret) = CONSOLES[2];
    let message = Message::Order(order(EXCLUDE, Addressees::All));
    let mut draft = Datagram { from: console, counter: COUNTER, flight: 7, message }.draft().unwrap();
    let (roster, bytes) = (with_consoles(), signer(secret).seal(&mut draft).to_vec());
    let opened = roster.open(&bytes).unwrap();
    let exclusion = Some((7, VehicleId(12)));
    assert_eq!(opened.claim(), Claim { from: console, counter: COUNTER, exclusion, session: None });
    let mut relayed = Draft::relay(opened.sealed()).unwrap();
    assert_eq!(signer(1).seal(&mut relayed), bytes, "an aircraft adds nothing");
    // The draft is used again for a datagram of its own.
    relayed.write(AIRCRAFT, COUNTER, 7, &Message::ReadyToFly).unwrap();
    assert_eq!(roster.open(signer(1).seal(&mut relayed)).map(|opened| opened.from()), Ok(AIRCRAFT));
    assert_eq!(Draft::relay(&[0; DATAGRAM_LEN_MAX + 1]), Err(Refused::TooLong));
}

#[test]
fn orders_that_no_console_sends_are_refused() {
    let refused = |change: &dyn Fn(&mut Order)| {
        let mut order = order(Command::Hold, listed([1]));
        change(&mut order);
        decode(&encode(&Datagram { message: Message::Order(order), ..Datagram::blank() }).unwrap()).err()
    };
    assert_eq!(refused(&|_| {}), None);
    assert_eq!(refused(&|o| o.to = listed([])), Some(Refused::Contradiction));
    for id in ["", "a b", "é"] {
        assert_eq!(refused(&|o| o.id = id.try_into().unwrap()), Some(Refused::Impossible), "{id:?}");
    }
    let unnamed = OrderTaken { id: CommandId::new(), ..taken() };
    let bytes = encode(&Datagram { message: Message::OrderTaken(unnamed), ..Datagram::blank() }).unwrap();
    assert_eq!(decode(&bytes), Err(Refused::Impossible));
}

#[test]
fn the_longest_orders_fit_what_they_are_kept_in() {
    let id = CommandId::try_from(["x"; 64].concat().as_str()).unwrap();
    let exclude = Command::Exclude { member: VehicleId(u64::MAX) };
    let length = |to| length_at_most(&Message::Order(Order { id: id.clone(), to, command: exclude }));
    assert!(length(Addressees::All) <= EXCLUSION_LEN_MAX, "{}", length(Addressees::All));
    let most = listed((0..ADDRESSEES_MAX as u64).map(|n| u64::MAX - n));
    assert!(length(most.clone()) <= DATAGRAM_LEN_MAX / 2, "{}", length(most));
}
