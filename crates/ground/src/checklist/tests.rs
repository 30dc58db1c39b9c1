use super::*;

const A: &str = "000000000000000a";
const B: &str = "000000000000000b";

fn list() -> List {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("list.toml");
    let text = "title = \"T\"\n\
        [[item]]\nid = \"area\"\ntext = \"area\"\n\
        [[item]]\nid = \"note\"\ntext = \"note\"\nrequired = false\n\
        [[item]]\nid = \"props\"\ntext = \"props\"\nper = \"aircraft\"\n\
        [[item]]\nid = \"go\"\ntext = \"go\"\nbefore = \"start\"\n";
    std::fs::write(&path, text).unwrap();
    List::read(&path).unwrap()
}

fn desk(folder: &std::path::Path) -> Desk {
    let configured = Configured { list: list(), folder: folder.join("checklists") };
    Desk::open(Some(configured), "lab".to_owned(), 8700).unwrap()
}

fn aircraft(ids: &[&str]) -> Vec<(String, String)> {
    ids.iter().map(|id| ((*id).to_owned(), format!("UAV {}", id.trim_start_matches('0')))).collect()
}

fn tick(desk: &Desk, item: &str, vehicle: &str) {
    let inner = desk.inner.as_ref().unwrap();
    let mut state = lock(&inner.state);
    let ticked = Ticked { by: "anna".to_owned(), unix_ms: 1_764_000_000_000 };
    state.ticks.entry(item.to_owned()).or_default().insert(vehicle.to_owned(), ticked);
    inner.disk.keep(Kept::Ticks(Box::new(state.clone())), &mut state);
}

fn checks(id: &str, detail: &str) -> CheckedAircraft {
    CheckedAircraft {
        id: id.to_owned(),
        name: "UAV".to_owned(),
        time: utc(0),
        firmware: None,
        battery: None,
        mission: None,
        flight_setup: None,
        checks: vec![wingbeat_api::Check {
            name: "battery".to_owned(),
            passed: true,
            is_required: true,
            detail: detail.to_owned(),
        }],
    }
}

#[tokio::test]
async fn what_is_missing_is_named_by_item_and_aircraft_before_two_commands_alone() {
    let folder = tempfile::tempdir().unwrap();
    let desk = desk(folder.path());
    let both = aircraft(&[A, B]);
    assert_eq!(desk.missing(Command::Setup, &both), "checklist: 2 not ticked: area, props (UAV a, UAV b)");
    assert_eq!(
        desk.missing(Command::Start, &both),
        "checklist: 3 not ticked: area, props (UAV a, UAV b), go"
    );
    tick(&desk, "area", "");
    tick(&desk, "props", A);
    assert_eq!(desk.missing(Command::Setup, &both), "checklist: 1 not ticked: props (UAV b)");
    assert_eq!(desk.missing(Command::Setup, &aircraft(&[A])), "");
    assert_eq!(desk.missing(Command::Start, &aircraft(&[A])), "checklist: 1 not ticked: go");
    let many = aircraft(&["01", "02", "03", "04", "05"]);
    let expected = "checklist: 1 not ticked: props (UAV 1, UAV 2, UAV 3 and 2 more)";
    assert_eq!(desk.missing(Command::Setup, &many), expected);
    let member = wingbeat_api::VehicleId::from_hexadecimal(A).unwrap();
    for command in [
        Command::Hold,
        Command::Return,
        Command::Land,
        Command::RecoverControl,
        Command::Resume,
        Command::Engage,
        Command::SetParameters,
        Command::Exclude { member },
    ] {
        assert_eq!(desk.missing(command, &both), "", "{command}");
    }
    let none = Desk::open(None, "lab".to_owned(), 8700).unwrap();
    assert_eq!((none.missing(Command::Start, &both), none.shown(), none.version()), (String::new(), None, 0));
}

#[tokio::test]
async fn a_restart_keeps_ticks_of_the_same_list_alone() {
    let folder = tempfile::tempdir().unwrap();
    let first = desk(folder.path());
    tick(&first, "area", "");
    first.flush().await;
    drop(first);
    assert!(!desk(folder.path()).shown().unwrap().items[0].ticks.is_empty());
    let path = folder.path().join("checklists/ticks-8700.json");
    let text = std::fs::read_to_string(&path).unwrap();
    for other in [text.replace(&list().hash, &"0".repeat(64)), text.replace('}', ""), "[]".to_owned()] {
        std::fs::write(&path, &other).unwrap();
        let desk = desk(folder.path());
        assert!(desk.shown().unwrap().items.iter().all(|item| item.ticks.is_empty()), "{other}");
        tick(&desk, "area", "");
        desk.flush().await;
        assert_eq!(disk::read_ticks(&path).unwrap().unwrap().hash, list().hash, "it is written anew");
    }
}

#[tokio::test]
async fn each_start_has_a_file_with_its_own_aircraft() {
    let folder = tempfile::tempdir().unwrap();
    let desk = desk(folder.path());
    for (item, vehicle) in [("area", ""), ("go", ""), ("props", A), ("props", B)] {
        tick(&desk, item, vehicle);
    }
    let accepted = |command, id, aircraft| desk.accepted(Accepted { command, id, by: "otto", aircraft });
    accepted(Command::Setup, "s", vec![checks(A, "80 %"), checks(B, "70 %")]);
    accepted(Command::Start, "1", vec![checks(A, "79 %")]);
    accepted(Command::Start, "2", vec![checks(B, "69 %")]);
    desk.flush().await;
    let results = desk.results().unwrap().results;
    assert_eq!(results.len(), 2, "{results:?}");
    let read = |name: &str| serde_json::from_slice::<ChecklistResult>(&desk.result(name).unwrap()).unwrap();
    let mut kept: Vec<ChecklistResult> = results.iter().map(|file| read(&file.name)).collect();
    kept.sort_by(|a, b| a.command.cmp(&b.command));
    let one = &kept[0];
    assert_eq!((one.by.as_str(), one.hash == list().hash, one.format), ("otto", true, 1));
    let details = |list: &[CheckedAircraft]| -> Vec<String> {
        list.iter()
            .map(|one| format!("{} {}", one.id.trim_start_matches('0'), one.checks[0].detail))
            .collect()
    };
    assert_eq!(
        (details(&one.setup), details(&one.start)),
        (vec!["a 80 %".to_owned()], vec!["a 79 %".to_owned()])
    );
    assert_eq!(details(&kept[1].start), ["b 69 %"]);
    let props = one.items.iter().find(|item| item.id == "props").unwrap();
    let ticks: Vec<_> = props.ticks.iter().map(|tick| tick.vehicle.as_deref().unwrap()).collect();
    assert_eq!(ticks, [A], "of the aircraft that was started alone");
    assert_eq!(
        (props.ticks[0].by.as_str(), props.ticks[0].time.as_str()),
        ("anna", "2025-11-24T16:00:00.000Z")
    );
    assert_eq!(desk.shown().unwrap().last_result.as_ref(), Some(&results[0].name));
    assert_eq!(desk.of_last(1).len(), 2);
    for name in [
        "",
        "../ticks-8700.json",
        "checklist-.json",
        "ticks-8700.json",
        "checklist-../x.json",
        "checklist-1.json\0",
    ] {
        assert_eq!(desk.result(name).unwrap_err().status(), 400, "{name:?}");
    }
    assert_eq!(desk.result("checklist-20260101T000000Z.json").unwrap_err().status(), 404);
}

#[cfg(unix)]
#[tokio::test]
async fn a_disk_that_takes_nothing_is_shown_and_keeps_nothing_waiting() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = tempfile::tempdir().unwrap();
    let desk = desk(folder.path());
    let kept = folder.path().join("checklists");
    // In the place of the new file a folder: root is stopped by that too.
    let new = kept.join(format!("ticks-8700.new-{}", std::process::id()));
    std::fs::create_dir(&new).unwrap();
    std::fs::set_permissions(&new, std::fs::Permissions::from_mode(0o700)).unwrap();
    tick(&desk, "area", "");
    desk.flush().await;
    let shown = desk.shown().unwrap();
    assert!(
        shown.problem.as_ref().is_some_and(|problem| problem.starts_with("ticks of the checklist could not")),
        "{shown:?}"
    );
    assert_eq!(desk.missing(Command::Setup, &[]), "", "it counts all the same");
    std::fs::remove_dir(&new).unwrap();
    tick(&desk, "go", "");
    desk.flush().await;
    assert_eq!(desk.shown().unwrap().problem, None, "what is there now is all of it");
}
