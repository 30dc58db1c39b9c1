use super::*;

const ME: VehicleId = VehicleId(1);
const PEER: VehicleId = VehicleId(2);

fn motion(east_e7: i32) -> SenderMotion {
    let at = Location { latitude_e7: 394_825_940, longitude_e7: -3_462_650 + east_e7, altitude_mm: 60_000 };
    SenderMotion { at, heading_cdeg: 9_000, east_cm_s: 500, north_cm_s: 0, up_cm_s: -20 }
}

fn address() -> SocketAddr {
    ([10, 0, 0, 2], 14_600).into()
}

fn links() -> Links {
    Links::new(ME, Some(Duration::from_secs(1)), SIGNATURE_LEN)
}

fn receive(links: &mut Links, ms: u64, test: u32, sequence: u32) {
    let motion_of_sender = Some(motion(11_630));
    let probe = Probe { test, sequence, period_ms: 1_000, motion: motion_of_sender, ..Probe::default() };
    links.on_probe(Instant::from_millis(ms), (PEER, address()), &probe, Some(motion(0)));
}

fn counts(links: &Links, ms: u64) -> (u32, u32) {
    let report = links.report(Instant::from_millis(ms));
    (report.links[0].received, report.links[0].lost)
}

fn test_of(role: LinkTestRole) -> LinkTestRequest {
    let (sender, receiver) = if role == LinkTestRole::Sender { (ME, PEER) } else { (PEER, ME) };
    LinkTestRequest {
        number: Some(7),
        sender: sender.to_string(),
        receivers: vec![receiver.to_string()],
        rate_hz: 50.0,
        payload_bytes: 1_000,
        seconds: 2,
        unicast: false,
    }
}

/// Everything that is sent until a time, every millisecond.
fn sent(links: &mut Links, from_ms: u64, until_ms: u64) -> Vec<(u64, Due)> {
    let mut all = vec![];
    for ms in from_ms..until_ms {
        let now = Instant::from_millis(ms);
        links.expire(now);
        while now >= links.due() {
            let Some(due) = links.poll(now, Some(motion(0))) else { continue };
            links.on_sent(now, due.order, Some(motion(0)));
            all.push((ms, due));
        }
    }
    all
}

#[test]
fn losses_are_counted_in_the_last_thirty_and_while_nothing_comes() {
    let mut links = links();
    for n in 0..10 {
        receive(&mut links, u64::from(n) * 1_000, 0, n);
    }
    assert_eq!(counts(&links, 9_000), (10, 0), "none is lost before the first");
    for n in [12, 13, 17] {
        receive(&mut links, u64::from(n) * 1_000, 0, n);
    }
    assert_eq!(counts(&links, 17_400), (13, 5));
    // Silence: half a period late is no loss yet.
    assert_eq!(counts(&links, 18_400), (13, 5));
    assert_eq!(counts(&links, 18_600), (13, 6));
    assert_eq!(counts(&links, 20_600), (13, 8));
    assert_eq!(counts(&links, 32_600), (13 - 3, 20), "the first have left the window");
    assert_eq!(counts(&links, 4_000_000), (0, 30));
    // Long after: of the thirty before it all were lost.
    receive(&mut links, 4_000_000, 0, 4_000);
    assert_eq!(counts(&links, 4_000_000), (1, 29));
    // A daemon that was started again counts from zero.
    receive(&mut links, 4_002_000, 0, 0);
    receive(&mut links, 4_003_000, 0, 1);
    assert_eq!(counts(&links, 4_003_000), (2, 0));
    let link = &links.report(Instant::from_millis(4_003_250)).links[0];
    let distance_m = link.distance_m.unwrap();
    assert!((distance_m - 100.0).abs() < 0.5 && link.age_ms == 250, "{distance_m} {}", link.age_ms);
}

#[test]
fn the_table_of_aircraft_is_bounded_and_forgets_the_silent() {
    let mut links = links();
    for id in 0..1_000 {
        let probe = Probe { period_ms: 1_000, ..Probe::default() };
        links.on_probe(Instant::from_millis(id), (VehicleId(id), address()), &probe, None);
    }
    let report = links.report(Instant::from_secs(1));
    assert_eq!(report.links.len(), PEERS_MAX);
    assert_eq!(report.links[0].from, VehicleId(1_000 - PEERS_MAX as u64).to_string());
    assert_eq!(report.links[0].distance_m, None, "no position");
}

#[test]
fn a_probe_is_due_each_period_and_what_was_missed_is_not_made_up_for() {
    let mut links = links();
    let at: Vec<u64> = sent(&mut links, 0, 4_000).iter().map(|(ms, _)| *ms).collect();
    let first = at[0];
    assert_eq!(at, [0, 1_000, 2_000, 3_000].map(|ms| first + ms));
    let mut other = Links::new(PEER, Some(Duration::from_secs(1)), 0);
    assert_ne!(sent(&mut other, 0, 1_000)[0].0, first, "not all at the same time");
    assert_eq!(sent(&mut links, 60_000, 60_900).len(), 1);
    let mut quiet = Links::new(ME, None, 0);
    assert_eq!((quiet.due(), sent(&mut quiet, 0, 5_000).len()), (Instant::NEVER, 0));
}

#[test]
fn a_sender_sends_its_count_and_ends_by_itself() {
    let mut links = Links::new(ME, None, SIGNATURE_LEN);
    let report = links.begin(Instant::from_secs(1), test_of(LinkTestRole::Sender), Some(motion(0))).unwrap();
    assert_eq!((report.role, report.ended), (LinkTestRole::Sender, None));
    let sent = sent(&mut links, 1_000, 5_000);
    assert_eq!(sent.len(), 100);
    let (at_ms, Due { order, to }) = sent[99];
    assert_eq!((at_ms, order.test, order.sequence, order.unsigned_len, to), (2_980, 7, 99, 936, None));
    let report = links.test_report(Instant::from_secs(5)).unwrap();
    assert_eq!((report.count, report.ended.as_deref()), (100, Some("its time is over")));
    assert_eq!((report.elapsed_ms, report.ran_ms), (4_000, 2_000));
    let rows = links.rows(98).unwrap();
    assert_eq!((rows.rows.len(), rows.next, rows.rows[1].sequence), (2, None, Some(99)));
    assert_eq!((rows.rows[1].own.heading_deg, rows.rows[1].own.up_m_s), (90.0, -0.2));
}

#[test]
fn a_receiver_records_what_comes_and_where_it_is_meanwhile() {
    let mut links = Links::new(ME, None, SIGNATURE_LEN);
    links.begin(Instant::ZERO, test_of(LinkTestRole::Receiver), Some(motion(0))).unwrap();
    // Of the second second every other is lost; another aircraft's and a later test's are no part of it.
    for n in (0..50).chain((50..100).step_by(2)) {
        sent(&mut links, u64::from(n) * 20, u64::from(n) * 20 + 1);
        receive(&mut links, u64::from(n) * 20, 7, n);
    }
    receive(&mut links, 1_990, 8, 3);
    receive(&mut links, 1_990, 7, 50_000);
    assert!(sent(&mut links, 1_990, 3_900).is_empty(), "a receiver sends nothing");
    let report = links.test_report(Instant::from_millis(3_900)).unwrap();
    assert_eq!((report.count, report.ended.is_some()), (75, false));
    let received: Vec<u32> = report.seconds.iter().map(|second| second.received).collect();
    assert_eq!(received, [50, 25]);
    assert!(report.seconds.iter().all(|second| (second.distance_m.unwrap() - 100.0).abs() < 0.5));
    sent(&mut links, 3_900, 4_100);
    assert_eq!(links.test_report(Instant::from_secs(5)).unwrap().ended.as_deref(), Some("its time is over"));
    let rows = links.rows(0).unwrap().rows;
    let track = rows.iter().filter(|row| row.sequence.is_none()).count();
    assert!((14..=17).contains(&track), "{track}");
    assert!(rows.iter().all(|row| row.sequence.is_some() == row.sender.is_some()));
}

#[test]
fn one_test_at_a_time_and_only_where_it_can_be_judged() {
    let mut links = links();
    let (now, sender) = (Instant::from_secs(10), test_of(LinkTestRole::Sender));
    let refused = |links: &mut Links, test: &LinkTestRequest, own| {
        links.begin(now, test.clone(), own).unwrap_err().message
    };
    assert!(refused(&mut links, &sender, None).contains("found no position"));
    let unicast = LinkTestRequest { unicast: true, ..sender.clone() };
    assert!(refused(&mut links, &unicast, Some(motion(0))).contains("unicast: found no probe"));
    receive(&mut links, 9_000, 3, 1);
    assert!(
        refused(&mut links, &sender, Some(motion(0))).contains("another test, of 0000000000000002, 1000 ms")
    );
    receive(&mut links, 9_500, 0, 1);
    let later = Instant::from_secs(12);
    links.begin(later, unicast.clone(), Some(motion(0))).unwrap();
    assert_eq!(
        sent(&mut links, 12_000, 12_001).iter().filter(|(_, due)| due.to == Some(address())).count(),
        1
    );
    assert!(links.begin(later, unicast, Some(motion(0))).is_ok(), "the same again");
    let other = LinkTestRequest { number: Some(8), ..sender };
    let error = links.begin(later, other.clone(), Some(motion(0))).unwrap_err();
    assert!(error.message.contains("found test 7 running"), "{}", error.message);
    assert_eq!(links.end(later, "over").as_deref(), Some("link test 7 ended: over"));
    assert_eq!(links.end(later, "over"), None);
    assert!(links.begin(later, other, Some(motion(0))).is_ok());
}

#[test]
fn a_test_that_cannot_be_flown_is_refused_with_found_and_expected() {
    let me = ME.to_string();
    let good = test_of(LinkTestRole::Sender);
    assert_eq!(check(&good, &me, true), Ok(()));
    let with = |change: &dyn Fn(&mut LinkTestRequest)| {
        let mut test = good.clone();
        change(&mut test);
        check(&test, &me, true).unwrap_err()
    };
    for (message, words) in [
        (with(&|t| t.number = None), "number: found none"),
        (with(&|t| t.number = Some(0)), "number: found 0"),
        (with(&|t| t.sender = "1".into()), "found the id \"1\", expected 16 lower-case"),
        (with(&|t| t.receivers = vec![]), "receivers: found 0, expected 1 to 16"),
        (with(&|t| t.receivers.push(PEER.to_string())), "receivers: found 2"),
        (with(&|t| t.receivers = vec![t.sender.clone()]), "none of them the sender"),
        (with(&|t| t.rate_hz = 0.5), "rate_hz: found 0.5, expected 1 to 100"),
        (with(&|t| t.rate_hz = f64::NAN), "rate_hz: found NaN"),
        (with(&|t| t.payload_bytes = 149), "payload_bytes: found 149, expected 150 to 1472"),
        (with(&|t| t.payload_bytes = 1_473), "found 1473"),
        (with(&|t| t.seconds = 0), "seconds: found 0, expected 1 to 600"),
        (with(&|t| t.seconds = 601), "found 601"),
        (with(&|t| t.sender = VehicleId(9).to_string()), "found no 0000000000000001"),
    ] {
        assert!(message.contains(words), "{message}: expected {words}");
    }
    let two = |t: &mut LinkTestRequest| {
        t.receivers.push(VehicleId(3).to_string());
        t.unicast = true;
    };
    assert!(with(&two).contains("unicast: found 2 receivers"));
    assert!(check(&LinkTestRequest { payload_bytes: 1_409, ..good.clone() }, &me, false).is_err());
    // The most that can be asked for is within the air's share.
    let most = LinkTestRequest { rate_hz: 100.0, payload_bytes: 1_472, ..good };
    assert_eq!(check(&most, &me, true), Ok(()));
}
