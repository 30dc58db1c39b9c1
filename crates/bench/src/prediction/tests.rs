use std::path::Path;
use std::sync::LazyLock;

use plotters::style::RGBColor;

use super::plot::{colour, svg};
use super::table::{ahead_m, figures, table};
use wingbeat_wire::Avoidance;

use super::*;

/// One flight of each, flown once for all tests.
static FLOWN: LazyLock<Vec<Flown>> = LazyLock::new(|| fly_all().expect("all flights are completed"));

fn flown(alternative: Alternative) -> &'static Flown {
    FLOWN.iter().find(|f| f.alternative == alternative).expect("each is flown")
}

/// On a straight line to the north at 10 m/s, a fix each tenth of a second.
fn straight() -> Vec<Fix> {
    (0..=300)
        .map(|n| Fix {
            at: Instant::from_millis(n * 100),
            position: DVec2::new(0.0, n as f64),
            velocity: DVec2::new(0.0, 10.0),
        })
        .collect()
}

fn beacon(frame: &Frame, age_ms: u16, places: &[(f64, f64)]) -> Beacon {
    let location = |&(x, y): &(f64, f64)| {
        let p = frame.to_position(DVec3::new(x, y, 0.0));
        Location { latitude_e7: p.latitude_e7, longitude_e7: p.longitude_e7, altitude_mm: 0 }
    };
    Beacon {
        event: 0,
        state: Avoidance::Normal,
        landing: false,
        avoiding: None,
        planned_speed_cm_s: 1_000,
        speed_cm_s: 1_000,
        age_ms,
        locations: places.iter().map(location).collect(),
    }
}

const NEVER: Manoeuvres = Manoeuvres {
    fast_at: Instant::ZERO,
    turn: (Instant::from_secs(1_000), Instant::from_secs(1_001)),
    slow_at: Instant::from_secs(2_000),
};

#[test]
fn an_error_is_the_distance_to_the_true_position_at_the_predicted_time() {
    let (frame, fixes) = (Frame::new(ORIGIN), straight());
    // Measured at 2.05 s, sent 0.4 s later: right about now, 3 m off in half a second, 4 m short in one.
    let sent = beacon(&frame, 400, &[(0.0, 20.5), (3.0, 25.5), (0.0, 26.5)]);
    let sent_at = Instant::from_millis(2_450);
    let (phase, errors) =
        judge(sent_at, &sent, Alternative::Three, 0.5, &frame, &fixes, &NEVER).expect("it counts");
    assert_eq!(phase, MotionPhase::Constant);
    for (found, expected) in errors.iter().zip([0.0, 3.0, 4.0]) {
        assert!((found - expected).abs() < 0.02, "{errors:?}");
    }
    assert_eq!(errors.len(), 3);
    // Not before the recording, and not after it.
    let too_early = Instant::from_millis(300);
    assert_eq!(judge(too_early, &sent, Alternative::Three, 0.5, &frame, &fixes, &NEVER), None);
    let late = Instant::from_millis(29_900);
    let (_, errors) = judge(late, &sent, Alternative::Three, 0.5, &frame, &fixes, &NEVER).unwrap();
    assert_eq!(errors.len(), 2, "30.5 s is not recorded");
}

#[test]
fn of_the_original_nothing_counts_beyond_its_threshold() {
    let (frame, fixes) = (Frame::new(ORIGIN), straight());
    let sent = beacon(&frame, 0, &[(0.0, 0.0), (0.0, 89.0), (0.0, 91.0)]);
    let count = |alternative| {
        judge(Instant::ZERO, &sent, alternative, 0.5, &frame, &fixes, &NEVER).map(|(_, e)| e.len())
    };
    assert_eq!(count(Alternative::One), Some(2));
    assert_eq!(count(Alternative::Enhanced), Some(3));
}

#[test]
fn a_beacon_belongs_to_the_manoeuvre_that_it_covers() {
    let s = Instant::from_secs;
    let m = Manoeuvres { fast_at: s(10), turn: (s(50), s(60)), slow_at: s(100) };
    assert_eq!(m.during(s(9), s(15)), MotionPhase::Start);
    assert_eq!(m.during(s(20), s(26)), MotionPhase::Constant);
    assert_eq!(m.during(s(46), s(52)), MotionPhase::Turn);
    assert_eq!(m.during(s(59), s(65)), MotionPhase::Turn);
    assert_eq!(m.during(s(60), s(66)), MotionPhase::Constant);
    assert_eq!(m.during(s(97), s(103)), MotionPhase::Braking);
}

#[test]
fn at_constant_speed_the_errors_stay_below_the_published_ones() {
    for f in FLOWN.iter() {
        let constant = figures(f, Some(MotionPhase::Constant));
        let most_m = if f.alternative == Alternative::Enhanced { 1.0 } else { 4.0 };
        assert!(constant.max_m <= most_m && constant.mean_m < 2.0, "{:?}: {constant:?}", f.alternative);
        assert!(constant.beacons > 500, "most of the flight: {constant:?}");
        for phase in [MotionPhase::Start, MotionPhase::Turn, MotionPhase::Braking] {
            let manoeuvre = figures(f, Some(phase));
            assert!(manoeuvre.max_m > 2.0 * constant.max_m, "{:?} {phase:?}: {manoeuvre:?}", f.alternative);
        }
    }
}

#[test]
fn each_alternative_is_better_than_the_one_before_where_the_thesis_states_it() {
    let of = |alternative, phase| figures(flown(alternative), Some(phase));
    let (one, two, three, e) =
        (Alternative::One, Alternative::Two, Alternative::Three, Alternative::Enhanced);
    // The projection mends the turn, and only that (figure 5.4).
    assert!(of(two, MotionPhase::Turn).max_m < 0.7 * of(one, MotionPhase::Turn).max_m);
    assert_eq!(of(two, MotionPhase::Start).max_m, of(one, MotionPhase::Start).max_m);
    // The acceleration mends start and stop, and shortens all peaks (figure 5.6).
    assert!(of(three, MotionPhase::Start).max_m < 0.3 * of(two, MotionPhase::Start).max_m);
    assert!(of(three, MotionPhase::Braking).max_m < of(two, MotionPhase::Braking).max_m);
    for phase in [MotionPhase::Start, MotionPhase::Turn, MotionPhase::Braking] {
        assert!(of(three, phase).peak_s < of(two, phase).peak_s, "{phase:?}");
        // MBCAP-e is better everywhere (figure 5.15).
        assert!(of(e, phase).max_m < of(three, phase).max_m, "{phase:?}");
        assert!(of(e, phase).peak_s < of(three, phase).peak_s, "{phase:?}");
    }
    // For MBCAP and MBCAP-e the turn is the worst of all.
    for alternative in [three, e] {
        let worst = figures(flown(alternative), None).max_m;
        assert_eq!(of(alternative, MotionPhase::Turn).max_m, worst, "{alternative:?}");
    }
}

#[test]
fn the_error_grows_with_the_time_ahead_and_the_third_alternative_is_best_up_to_six_seconds() {
    let mean = |alternative, hop| ahead_m(flown(alternative), hop).expect("it is predicted").0;
    for hop in 2..=12 {
        let [one, two, three] =
            [Alternative::One, Alternative::Two, Alternative::Three].map(|a| mean(a, hop));
        assert!(three < two && two < one, "{hop}: {one} {two} {three}");
        assert!(mean(Alternative::One, hop) > mean(Alternative::One, hop - 1));
    }
    for hop in 1..=10 {
        assert!(mean(Alternative::Enhanced, hop) < mean(Alternative::Three, hop), "{hop}");
    }
}

#[test]
fn a_flight_repeats() {
    assert!(&fly(Alternative::Enhanced).unwrap() == flown(Alternative::Enhanced));
}

#[test]
fn the_drawing_has_every_curve() {
    let drawing = svg(&FLOWN).unwrap();
    assert!(drawing.starts_with("<svg ") && drawing.trim_end().ends_with("</svg>"));
    for &alternative in Alternative::ALL {
        let RGBColor(r, g, b) = colour(alternative);
        let stroke = format!("stroke=\"#{r:02X}{g:02X}{b:02X}\"");
        let lines = drawing.lines().filter(|line| line.starts_with("<polyline ") && line.contains(&stroke));
        let (curves, keys): (Vec<_>, Vec<_>) = lines.partition(|line| line.matches(',').count() > 10);
        assert_eq!((curves.len(), keys.len()), (2, 2), "{alternative:?}: two panels, each with its legend");
        assert_eq!(drawing.lines().filter(|line| line.trim() == alternative.name()).count(), 2);
    }
    assert!(!drawing.contains("NaN") && !drawing.contains("inf"));
}

/// `UPDATE_DOCS=1 cargo test -p wingbeat-bench prediction` writes the table anew.
#[test]
fn the_documented_table_is_the_measured_one() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/protocols/mbcap.md");
    let text = std::fs::read_to_string(&path).unwrap();
    let (open, close) = ("<!-- wingbeat bench prediction -->\n```text\n", "```\n");
    let begin = text.find(open).expect("the place of the table") + open.len();
    let end = begin + text[begin..].find(close).expect("the end of the table");
    let measured = table(&FLOWN);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{measured}{}", &text[..begin], &text[end..])).unwrap();
        return;
    }
    assert_eq!(&text[begin..end], measured, "UPDATE_DOCS=1 writes it anew");
}
