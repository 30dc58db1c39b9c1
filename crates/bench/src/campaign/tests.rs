use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::compare::compare;
use super::results::{self, About};
use super::*;

const PLANS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/plans");

/// Two short flights of each row of two.
fn plan() -> Plan {
    let mut plan = Plan::read(&Path::new(PLANS).join("muscop-overhead.toml")).unwrap();
    plan.repeat = 2;
    plan.keep(Some(2), None).unwrap();
    if let Some(stairs) = plan.mission.as_mut().and_then(|m| m.staircase.as_mut()) {
        stairs.waypoints = vec![2, 3];
        stairs.length_m = 150.0;
    }
    plan
}

fn campaign<'a>(plan: &'a Plan, folder: &Path) -> Campaign<'a> {
    Campaign::new(plan, Path::new(PLANS), 7, folder).unwrap()
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        fs::read_dir(stored::flights(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

#[test]
fn shards_together_are_the_whole_byte_for_byte_and_what_is_there_is_not_flown_again() {
    let plan = plan();
    let [whole, parts] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let one = campaign(&plan, whole.path());
    assert!(one.results().is_none());
    let tally = one.fly(Shard::WHOLE, 2, None, |_, _| {}).unwrap();
    assert_eq!(tally, Tally { flown: 8, present: 0, missing: 0, all: 8 });
    // In three parts, the second one twice, as after a worker that was killed.
    let three = campaign(&plan, parts.path());
    for (index, expected) in [(3, (2, 0)), (2, (3, 0)), (2, (0, 3)), (1, (3, 0))] {
        let tally = three.fly(Shard { index, count: 3 }, 1, None, |_, _| {}).unwrap();
        assert_eq!((tally.flown, tally.present), expected, "shard {index}");
        assert_eq!(three.results().is_some(), index == 1);
    }
    let (a, b) = (files(whole.path()), files(parts.path()));
    assert_eq!(a.len(), 8);
    for (a, b) in a.iter().zip(&b) {
        assert_eq!((a.file_name(), fs::read(a).unwrap()), (b.file_name(), fs::read(b).unwrap()));
    }
    // What is read is what was flown: the table and the hash of a run in one piece.
    let (outcome, flights) = three.results().unwrap();
    let direct = run::run(&plan, Path::new(PLANS), 7, 2).unwrap();
    assert_eq!((&outcome.table, outcome.trace_hash), (&direct.table, direct.trace_hash));
    assert_eq!(flights.len(), outcome.figures.len());
    assert!(outcome.figures.iter().filter(|row| row.is_reference).count() == 4);
}

#[test]
fn a_recorded_campaign_has_the_tracks_of_each_flight() {
    let plan = plan();
    let [folder, again] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let shard = Shard { index: 1, count: 4 };
    for folder in [&folder, &again] {
        let logs = folder.path().join("logs");
        campaign(&plan, folder.path()).fly(shard, 2, Some(&logs), |_, _| {}).unwrap();
    }
    let flown = files(folder.path());
    assert_eq!(flown.len(), 2);
    for file in flown {
        let key = file.file_stem().unwrap().to_str().unwrap();
        let [one, other] =
            [&folder, &again].map(|folder| fs::read(parquet::tracks_of(folder.path(), key)).unwrap());
        assert!(one.starts_with(b"PAR1") && one.ends_with(b"PAR1") && one.len() > 10_000, "{}", one.len());
        assert_eq!(one, other, "the same flight makes the same bytes");
    }
}

#[test]
fn a_damaged_result_is_flown_again_and_two_processes_do_not_fly_the_same_shard() {
    let plan = plan();
    let folder = tempfile::tempdir().unwrap();
    let campaign = campaign(&plan, folder.path());
    campaign.fly(Shard { index: 1, count: 4 }, 2, None, |_, _| {}).unwrap();
    let all = files(folder.path());
    let whole = fs::read(&all[0]).unwrap();
    fs::write(&all[0], &whole[..whole.len() / 2]).unwrap();
    // Under another flight's name.
    fs::copy(&all[1], stored::flights(folder.path()).join("other.json")).unwrap();
    let (read, bad) = Stored::read_all(folder.path()).unwrap();
    assert_eq!((read.len(), bad.len()), (1, 2), "{bad:?}");
    assert!(bad.iter().any(|line| line.contains("expected that of its name")), "{bad:?}");
    let nested = AtomicUsize::new(0);
    let tally = campaign
        .fly(Shard { index: 1, count: 4 }, 1, None, |_, _| {
            nested.fetch_add(1, Ordering::Relaxed);
            let error = campaign.fly(Shard { index: 1, count: 4 }, 1, None, |_, _| {}).unwrap_err();
            assert!(error.to_string().contains("another process flies shard 1/4"), "{error}");
        })
        .unwrap();
    assert_eq!((tally.flown, tally.present, nested.into_inner()), (1, 1, 1));
    assert_eq!(fs::read(&all[0]).unwrap(), whole);
}

#[test]
fn another_plan_or_seed_has_other_results_in_the_same_folder() {
    let plan = plan();
    let folder = tempfile::tempdir().unwrap();
    let keys = |plan: &Plan, seed| -> Vec<String> {
        let campaign = Campaign::new(plan, Path::new(PLANS), seed, folder.path()).unwrap();
        campaign.flown.iter().map(|flown| flown.key.clone()).collect()
    };
    let first = keys(&plan, 7);
    assert_eq!(first, keys(&plan, 7));
    let mut faster = plan.clone();
    faster.swarm.as_mut().unwrap().speed_m_s += 1.0;
    let mut renamed = plan.clone();
    renamed.title = "another title".into();
    assert_eq!(first, keys(&renamed, 7));
    for other in [keys(&plan, 8), keys(&faster, 7)] {
        assert!(other.iter().all(|key| !first.contains(key)), "{other:?}");
    }
}

#[test]
fn results_are_tables_that_others_read_and_one_page() {
    let mut plan = plan();
    plan.title = "Flights <of two> & \"more\"".into();
    let folder = tempfile::tempdir().unwrap();
    let campaign = campaign(&plan, folder.path());
    campaign.fly(Shard::WHOLE, 2, None, |_, _| {}).unwrap();
    let (outcome, flights) = campaign.results().unwrap();
    let about = About {
        plan: plan.name.clone(),
        title: plan.title.clone(),
        seed: 7,
        repeat: plan.repeat,
        flown_by: None,
        configuration: "name = \"x\"".into(),
        command: "wingbeat bench run x".into(),
    };
    results::write(folder.path(), &about, &outcome.table, &outcome.figures, &flights).unwrap();
    let text = |name: &str| fs::read_to_string(folder.path().join(name)).unwrap();
    let mut csv = csv::Reader::from_path(folder.path().join("flights.csv")).unwrap();
    let rows: Vec<row::FlightRow> = csv.deserialize().map(Result::unwrap).collect();
    assert_eq!(rows, outcome.figures);
    assert_eq!(text("aircraft.csv").lines().count(), 1 + 4 * 2 + 4);
    assert_eq!(text("table.txt"), outcome.table);
    let json: serde_json::Value = serde_json::from_str(&text("results.json")).unwrap();
    assert_eq!(json["flights"].as_array().unwrap().len(), 8);
    let page = text("index.html");
    assert!(
        page.contains("Flights &lt;of two&gt; &amp; &quot;more&quot;") && page.contains("<svg"),
        "{page}"
    );
    assert!(!page.contains("http:") || !page.contains("src="), "it needs no other file");
    // The first flight of each of two rows, and of the reference of each.
    assert_eq!(fs::read_dir(folder.path().join("courses")).unwrap().count(), 4);
    assert_eq!(page.matches("<details").count(), 4);
    for part in [
        "Paths from above",
        "Heights above where each stood",
        "Separation: the nearest two",
        "Error in the formation",
        "Radio: receptions",
        "by distance",
        "Batteries",
        "time in state (s)",
        "MovingToWaypoint",
        "<h2>CPU</h2>",
        "times real time",
        "ArduCopter 3.5.7, simulated",
    ] {
        assert!(page.contains(part), "{part}");
    }
    // A second time the same bytes.
    results::write(folder.path(), &about, &outcome.table, &outcome.figures, &flights).unwrap();
    assert_eq!(text("index.html"), page);
    // A course decides about nothing: the page is written without it.
    fs::remove_dir_all(folder.path().join("courses")).unwrap();
    results::write(folder.path(), &about, &outcome.table, &outcome.figures, &flights).unwrap();
    assert!(text("index.html").contains("<p>None was written.</p>"));
}

#[test]
fn a_database_takes_each_flight_once_and_refuses_what_it_does_not_know() {
    let plan = plan();
    let folder = tempfile::tempdir().unwrap();
    let campaign = campaign(&plan, folder.path());
    campaign.fly(Shard { index: 1, count: 2 }, 2, None, |_, _| {}).unwrap();
    let file = folder.path().join("all.sqlite");
    let flights =
        |count| Stored::read_all(folder.path()).unwrap().0.into_iter().take(count).collect::<Vec<_>>();
    assert_eq!(sqlite::add(&file, &flights(2)).unwrap(), 2);
    assert_eq!(sqlite::add(&file, &flights(4)).unwrap(), 2);
    let database = rusqlite::Connection::open(&file).unwrap();
    let count = |table: &str| -> i64 {
        database.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
    };
    let aircraft: usize = flights(4).iter().map(|stored| stored.flown.aircraft).sum();
    assert_eq!((count("flights"), count("aircraft")), (4, aircraft as i64));
    let mean: f64 =
        database.query_row("SELECT avg(mission_time_s) FROM flights", [], |row| row.get(0)).unwrap();
    assert!(mean > 10.0, "{mean}");
    // Of a program that had not this figure yet, under the same number; of an older schema; and no database at all.
    database
        .execute_batch("ALTER TABLE flights DROP COLUMN stops; ALTER TABLE flights ADD COLUMN hops")
        .unwrap();
    let error = format!("{:#}", sqlite::add(&file, &flights(4)).unwrap_err());
    assert!(
        error.contains(
            "all.sqlite: found a database of another program: its flights lack stops, and have hops"
        ),
        "{error}"
    );
    database
        .execute_batch("ALTER TABLE flights DROP COLUMN hops; ALTER TABLE flights ADD COLUMN stops")
        .unwrap();
    assert_eq!(sqlite::add(&file, &flights(4)).unwrap(), 0);
    database.pragma_update(None, "user_version", 0).unwrap();
    let error = format!("{:#}", sqlite::add(&file, &flights(1)).unwrap_err());
    assert!(error.contains("found a database of schema 0, expected 1"), "{error}");
    let text = folder.path().join("text");
    fs::write(&text, "no database, but long enough to be read as if it were one".repeat(20)).unwrap();
    let error = format!("{:#}", sqlite::add(&text, &flights(1)).unwrap_err());
    assert!(error.contains("text: ") && error.contains("not a database"), "{error}");
}

#[test]
fn two_campaigns_are_compared_seed_by_seed() {
    let (plan, folder) = (plan(), tempfile::tempdir().unwrap());
    let mut faster = plan.clone();
    faster.swarm.as_mut().unwrap().speed_m_s = 12.0;
    let rows = |plan: &Plan| {
        let campaign = campaign(plan, folder.path());
        campaign.fly(Shard::WHOLE, 2, None, |_, _| {}).unwrap();
        campaign.results().unwrap().0.figures
    };
    let (slow, fast) = (rows(&plan), rows(&faster));
    let same = compare(&slow, &slow, &[]);
    assert_eq!((same.pairs, same.equal, same.comparisons.len()), (8, 8, 0));
    let compared = compare(&slow, &fast[1..], &["mission_time_s".into()]);
    assert_eq!((compared.pairs, compared.equal, compared.only_before, compared.only_after), (7, 0, 1, 0));
    // By hand, of the row whose two pairs are there.
    let has_two = |c: &&compare::Comparison| c.difference.count == 2 && !c.flight.ends_with("(reference)");
    let row = compared.comparisons.iter().find(has_two).unwrap();
    let of = |rows: &[row::FlightRow]| -> Vec<f64> {
        let same = rows.iter().filter(|r| r.flight == row.flight && !r.is_reference);
        same.filter_map(|r| r.mission_time_s).collect()
    };
    let differences: Vec<f64> = of(&slow).iter().zip(of(&fast)).map(|(a, b)| b - a).collect();
    let mean = (differences[0] + differences[1]) / 2.0;
    let deviation = (differences[0] - differences[1]).abs() / 2.0_f64.sqrt();
    assert!(mean < -0.1 && (row.difference.mean - mean).abs() < 1e-9, "{differences:?}");
    assert!((row.difference.deviation - deviation).abs() < 1e-9);
    let table = compare::table(&compared);
    assert!(
        table.contains("7 pairs, 0 of them equal to the last byte; 1 flights only in the first"),
        "{table}"
    );
}

#[test]
fn ranges_of_a_plan_are_judged_flight_by_flight_or_by_their_mean() {
    let mut plan = plan();
    let ranges = |text: &str| -> Vec<accept::Accept> {
        #[derive(serde::Deserialize)]
        struct Ranges {
            accept: Vec<accept::Accept>,
        }
        toml::from_str::<Ranges>(text).unwrap().accept
    };
    plan.accept = ranges(
        "[[accept]]\nfigure = \"collisions\"\nmost = 0.0\n\
         [[accept]]\nfigure = \"mission_time_s\"\nof = \"mean\"\nleast = 1.0\nmost = 1000.0\n",
    );
    let outcome = run::run(&plan, Path::new(PLANS), 7, 2).unwrap();
    assert_eq!(outcome.missed, Vec::<String>::new());
    let missed = |text: &str| accept::misses(&ranges(text), &outcome.figures);
    let lines = missed("[[accept]]\nfigure = \"mission_time_s\"\nmost = 1.0");
    assert!(lines.len() == 4 && lines[0].contains("flight seed 7000: mission_time_s: found "), "{lines:?}");
    assert_eq!(missed("[[accept]]\nfigure = \"mission_time_s\"\nof = \"mean\"\nmost = 1.0").len(), 2);
    let lines = missed("[[accept]]\nfigure = \"stops\"\nflight = \"none such\"\nmost = 1.0");
    assert!(lines[0].contains("found no flight called 'none such'"), "{lines:?}");
    // A figure that one flight does not have.
    let mut figures = outcome.figures.clone();
    figures[1].encounter_closest_m = None;
    let range = ranges("[[accept]]\nfigure = \"encounter_closest_m\"\nleast = 0.0");
    let lines = accept::misses(&range, &figures);
    assert!(lines.len() == 1 && lines[0].contains("found none, expected at least 0"), "{lines:?}");
    for (bad, expected) in [
        ("figure = \"speed\"\nmost = 1.0", "expected one of completed"),
        ("figure = \"stops\"", "found neither least nor most"),
        ("figure = \"stops\"\nleast = 2.0\nmost = 1.0", "found least 2 above most 1"),
    ] {
        let error = ranges(&format!("[[accept]]\n{bad}"))[0].check().unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
