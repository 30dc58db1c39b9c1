//! What is not its sender's is refused, each with its reason.

use super::*;

const ME: VehicleId = VehicleId(1);
const PEER: VehicleId = VehicleId(2);

fn alive(from: VehicleId, counter: u64) -> Draft {
    let datagram = Datagram { from, counter, flight: 7, message: Message::Alive { at: point(3) } };
    datagram.draft().unwrap()
}

/// What the two of a fleet of two open.
fn ours() -> Roster {
    roster([(ME, 1), (PEER, 2)])
}

#[test]
fn what_its_sender_signed_is_opened() {
    let mut draft = alive(PEER, COUNTER);
    let bytes = signer(2).seal(&mut draft).to_vec();
    let roster = ours();
    let opened = roster.open(&bytes).unwrap();
    assert_eq!((opened.from(), opened.counter()), (PEER, COUNTER));
    let mut read = Datagram::blank();
    opened.read_into(&mut read).unwrap();
    assert_eq!(Ok(read), draft.read());
}

#[test]
fn every_changed_bit_and_every_other_length_is_refused() {
    let roster = ours();
    let bytes = signer(2).seal(&mut alive(PEER, COUNTER)).to_vec();
    for bit in 0..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let expected = match bit / 8 {
            0 => Refused::Version,
            1 => Refused::Epoch,
            _ => Refused::FleetTag,
        };
        assert_eq!(roster.open(&changed), Err(expected), "bit {bit}");
    }
    for length in 1..bytes.len() {
        let found = roster.open(&bytes[..length]).unwrap_err();
        assert!(matches!(found, Refused::Malformed | Refused::FleetTag), "{length}: {found:?}");
    }
    let longer = [&bytes[..], &[0]].concat();
    assert_eq!(roster.open(&longer), Err(Refused::FleetTag));
    assert_eq!(roster.open(&[]), Err(Refused::Empty));
    assert_eq!(roster.open(&[VERSION; DATAGRAM_LEN_MAX + 1]), Err(Refused::TooLong));
}

/// The fleet's key is in every aircraft, also in one that was captured: what that changes is refused by the signature.
#[test]
fn with_the_fleets_key_alone_nothing_is_opened_in_anothers_name() {
    let roster = ours();
    // Signed by the captured aircraft in the name of another.
    assert_eq!(roster.open(signer(2).seal(&mut alive(ME, COUNTER))), Err(Refused::Signature));
    assert_eq!(roster.open(signer(2).seal(&mut alive(VehicleId(3), COUNTER))), Err(Refused::UnknownSender));
    // Every bit of a good one, tagged anew.
    let bytes = signer(2).seal(&mut alive(PEER, COUNTER)).to_vec();
    for bit in 80..bytes.len() * 8 {
        let mut changed = bytes.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let tag = keys::tag(&fleet(), [&changed[..2], &changed[10..]]);
        changed[2..10].copy_from_slice(&tag);
        let found = roster.open(&changed).unwrap_err();
        let by = [Refused::Signature, Refused::UnknownSender, Refused::Malformed];
        assert!(by.contains(&found), "bit {bit}: {found:?}");
    }
}

#[test]
fn keys_of_another_fleet_or_epoch_are_refused() {
    let roster = ours();
    let foreign = Signer::new(&[2; 32], EPOCH, FleetKey([7; 32]));
    assert_eq!(roster.open(foreign.seal(&mut alive(PEER, COUNTER))), Err(Refused::FleetTag));
    let earlier = Signer::new(&[2; 32], EPOCH - 1, fleet());
    assert_eq!(roster.open(earlier.seal(&mut alive(PEER, COUNTER))), Err(Refused::Epoch));
    // A signature holds in its epoch alone, also where the fleet's key stayed the same.
    let mut bytes = earlier.seal(&mut alive(PEER, COUNTER)).to_vec();
    bytes[1] = EPOCH;
    let tag = keys::tag(&fleet(), [&bytes[..2], &bytes[10..]]);
    bytes[2..10].copy_from_slice(&tag);
    assert_eq!(roster.open(&bytes), Err(Refused::Signature));
}

#[test]
fn secured_and_insecure_never_mix() {
    let (secured, insecure) = (ours(), Roster::insecure());
    let mut draft = alive(PEER, COUNTER);
    let open = Signer::insecure().seal(&mut draft).to_vec();
    assert_eq!(insecure.open(&open).map(|o| o.from()), Ok(PEER));
    assert_eq!(secured.open(&open), Err(Refused::Version));
    let signed = signer(2).seal(&mut draft).to_vec();
    assert_eq!(signed.len(), open.len() + SIGNATURE_LEN);
    assert_eq!(insecure.open(&signed), Err(Refused::Version));
    assert_eq!(secured.open(&signed).map(|o| o.from()), Ok(PEER));
    assert!(secured.is_secured() && !insecure.is_secured());
    // The tag is a checksum there.
    let mut changed = open;
    changed[12] ^= 1;
    assert_eq!(insecure.open(&changed), Err(Refused::FleetTag));
}

#[cfg(feature = "stand-in")]
#[test]
fn a_stand_in_is_for_its_own_receivers_alone() {
    let stands_in = Signer::stand_in(&[9; 32], EPOCH, fleet());
    let mut draft = alive(PEER, COUNTER);
    let bytes = stands_in.seal(&mut draft).to_vec();
    assert_eq!(bytes.len(), signer(2).seal(&mut draft).len(), "the same time on the air");
    let roster = Roster::stand_in(&[9; 32], EPOCH, fleet());
    assert_eq!(roster.open(&bytes).map(|o| o.from()), Ok(PEER));
    assert_eq!(Roster::stand_in(&[8; 32], EPOCH, fleet()).open(&bytes), Err(Refused::Signature));
    assert_eq!(ours().open(&bytes), Err(Refused::Version));
    assert_eq!(roster.open(signer(2).seal(&mut draft)), Err(Refused::Version));
}

/// What a receiver refuses by sender and counter costs no signature.
#[test]
fn what_is_not_admitted_is_not_checked() {
    let roster = ours();
    // A wrong signature, which would be another reason.
    let mut draft = alive(PEER, COUNTER);
    let bytes = signer(1).seal(&mut draft).to_vec();
    let mut asked = Vec::new();
    let found = roster.open_if(&bytes, |claim| {
        asked.push(*claim);
        Err(Refused::Replayed)
    });
    assert_eq!(
        (found, asked),
        (
            Err(Refused::Replayed),
            std::vec![Claim { from: PEER, counter: COUNTER, exclusion: None, session: None }]
        )
    );
    assert_eq!(roster.open_if(&bytes, |_| Ok(())), Err(Refused::Signature));
}

#[test]
fn a_roster_takes_each_id_once_with_a_key_that_is_one() {
    let mut roster = ours();
    let key = signer(7).public_key().unwrap();
    assert_eq!(roster.add(PEER, Role::Aircraft, &key), Err(RosterError::Duplicate(PEER)));
    // The neutral element, and no point at all.
    let mut neutral = [0; 32];
    neutral[0] = 1;
    for bad in [neutral, [2; 32]] {
        assert_eq!(
            roster.add(VehicleId(3), Role::Operator, &bad),
            Err(RosterError::Key(VehicleId(3))),
            "{bad:?}"
        );
    }
    assert_eq!(roster.len(), 2);
    for id in 3..=ROSTER_MAX as u64 {
        roster.add(VehicleId(id), Role::Aircraft, &key).unwrap();
    }
    assert_eq!(roster.add(VehicleId(1_000), Role::Safety, &key), Err(RosterError::Full));
    assert_eq!(roster.public_key(VehicleId(77)), Some(key));
    assert_eq!(Roster::insecure().add(ME, Role::Aircraft, &key), Err(RosterError::Keyless(ME)));
    let text = format!("{:?} {:?} {:?}", signer(1), roster, fleet());
    assert!(!text.contains("90"), "keys are not printed: {text}");
}

/// The bounds that air time is planned with.
#[test]
fn the_shortest_messages_have_the_promised_length() {
    let from = VehicleId(0xffff_ffff_ffff);
    let length = |message| {
        let datagram = Datagram { from, counter: COUNTER, flight: u32::MAX, message };
        signer(1).seal(&mut datagram.draft().unwrap()).len()
    };
    for message in [
        Message::MoveToWaypoint { waypoint: 599 },
        Message::ReachedWaypointAck { waypoint: 599 },
        Message::DataAck { hash: u64::MAX },
        Message::ReadyToFlyAck,
        Message::TakeOffEndAck,
    ] {
        assert!(length(message.clone()) <= 110, "{message:?}: {}", length(message.clone()));
    }
    let far = Point { latitude_e7: -900_000_000, longitude_e7: 1_800_000_000, height_mm: 10_000_000 };
    let coordinates = Coordinates { at: far, heading_urad: 6_283_185, leads: true };
    let following = Message::Following { waypoint: 599, reached: true, leader: 127, at: far };
    for message in [Message::Coordinates(coordinates), following, Message::Alive { at: far }] {
        assert!(length(message.clone()) <= 130, "{message:?}: {}", length(message.clone()));
    }
}
