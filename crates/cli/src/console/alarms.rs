//! The alarms of the fleet: listed, and acknowledged.

use anyhow::Result;
use wingbeat_api::{AlarmLevel, AlarmsAcknowledge, FleetAlarm, FleetAlarms, FleetPicture, paths};
use wingbeat_ground::remote::{Method, Remote};

use super::service::Service;
use super::{Code, show};

pub(crate) async fn run(
    remote: &Remote,
    service: &Service,
    acknowledge: &[u64],
    acknowledge_all: bool,
) -> Result<Code> {
    let alarms: FleetAlarms = if acknowledge_all || !acknowledge.is_empty() {
        let request = AlarmsAcknowledge { numbers: acknowledge.to_vec() };
        remote.ask(Method::POST, paths::FLEET_ALARMS, Some(&request)).await?.json()?
    } else {
        remote.get(paths::FLEET_ALARMS).await?
    };
    // Before the picture: it is not older than the alarms.
    let picture: FleetPicture = remote.get(paths::FLEET).await?;
    show::answer(service.json, &alarms, |alarms| listed(alarms, picture.time_ms))?;
    Ok(Code::Done)
}

/// Alarms that last first, the gravest before the others; then the last that have ended.
fn listed(FleetAlarms { alarms }: &FleetAlarms, now_ms: u64) -> String {
    let mut alarms: Vec<&FleetAlarm> = alarms.iter().collect();
    alarms.sort_by_key(|alarm| {
        let is_over = alarm.ended_ms.is_some();
        (is_over, (!is_over).then_some(alarm.level == AlarmLevel::Caution), std::cmp::Reverse(alarm.number))
    });
    let rows: Vec<Vec<String>> = alarms.into_iter().map(|alarm| row(alarm, now_ms)).collect();
    if rows.is_empty() {
        return "no alarm since the ground service started\n".to_owned();
    }
    show::table(&["NUMBER", "LEVEL", "AIRCRAFT", "SINCE", "ENDED", "ACKNOWLEDGED", "WHAT"], &rows)
}

fn row(alarm: &FleetAlarm, now_ms: u64) -> Vec<String> {
    let ago = |ms: u64| format!("{} s ago", now_ms.saturating_sub(ms) / 1_000);
    vec![
        alarm.number.to_string(),
        show::word(&alarm.level),
        show::plain(&alarm.name),
        ago(alarm.since_ms),
        alarm.ended_ms.map_or("-".to_owned(), ago),
        alarm
            .acknowledged
            .as_ref()
            .map_or("-".to_owned(), |by| format!("{}, {}", show::plain(&by.by), ago(by.at_ms))),
        show::plain(&alarm.text),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use wingbeat_api::{AlarmAcknowledgement, AlarmKind};

    #[test]
    fn what_lasts_comes_first_and_the_gravest_of_it() {
        let alarm = |number, level, ended_ms| FleetAlarm {
            number,
            address: String::new(),
            name: format!("UAV {number}"),
            kind: AlarmKind::Lost,
            level,
            text: "out of contact".to_owned(),
            since_ms: 1_000 * number,
            ended_ms,
            acknowledged: (number == 2).then(|| AlarmAcknowledgement { by: "anna".to_owned(), at_ms: 8_000 }),
        };
        let alarms = FleetAlarms {
            alarms: vec![
                alarm(1, AlarmLevel::Alarm, Some(5_000)),
                alarm(2, AlarmLevel::Alarm, None),
                alarm(3, AlarmLevel::Caution, None),
            ],
        };
        let text = listed(&alarms, 10_000);
        let lines: Vec<&str> = text.lines().skip(1).collect();
        assert!(lines[0].starts_with('2') && lines[0].contains("anna, 2 s ago"), "{text}");
        assert!(lines[1].starts_with('3') && lines[2].starts_with('1'), "{text}");
        assert!(lines[2].contains("5 s ago"), "{text}");
        assert_eq!(listed(&FleetAlarms::default(), 0), "no alarm since the ground service started\n");
    }
}
