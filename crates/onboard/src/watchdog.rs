//! Telling systemd how the daemon does.
//!
//! The watchdog is fed only while every task turns ([`crate::liveness`]): a driver that flies without its
//! link, or a server that answers while the driver hangs, is not covered, and systemd starts another
//! daemon. The task that is late is named in the log before that.

use std::{sync::Arc, time::Duration};

use sd_notify::NotifyState;
use tokio::{
    sync::watch,
    time::{MissedTickBehavior, interval},
};
use wingbeat_api::AircraftStatus;

use crate::liveness::Liveness;

/// How often the tasks are checked where systemd expects no watchdog notification.
const CHECK_PERIOD: Duration = Duration::from_secs(1);
/// However short a period systemd is given, the daemon has other work.
const CHECK_PERIOD_LEAST: Duration = Duration::from_millis(10);
/// The watchdog is fed so many times in its period.
const FEEDS_PER_PERIOD: u32 = 4;

/// Notifies systemd through `notify` until the driver ends. `watchdog` is the period within which systemd
/// expects a notification.
pub async fn run(
    tasks: Liveness,
    mut status: watch::Receiver<Arc<AircraftStatus>>,
    watchdog: Option<Duration>,
    mut notify: impl FnMut(&[NotifyState<'_>]),
) {
    let period = watchdog.map_or(CHECK_PERIOD, |period| period / FEEDS_PER_PERIOD);
    let mut check = interval(period.max(CHECK_PERIOD_LEAST));
    check.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut state = None;
    let mut late_task = None;
    loop {
        tokio::select! {
            changed = status.changed() => {
                if changed.is_err() {
                    return;
                }
                let now = status.borrow_and_update().state;
                if state.replace(now) != Some(now) {
                    notify(&[NotifyState::Status(&now.to_string())]);
                }
            }
            _ = check.tick() => match tasks.late() {
                None => {
                    late_task = None;
                    if watchdog.is_some() {
                        notify(&[NotifyState::Watchdog]);
                    }
                }
                // Logged once, not at every check.
                Some(late) if late_task == Some(late.name) => {}
                Some(late) => {
                    late_task = Some(late.name);
                    tracing::error!(
                        "task {}: found no iteration for {} ms, expected one within {} ms; systemd's watchdog is not fed",
                        late.name, late.idle.as_millis(), late.limit.as_millis()
                    );
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use tokio::time::sleep;

    use super::*;
    use crate::driver;

    const SECOND: Duration = Duration::from_secs(1);

    fn a_status() -> AircraftStatus {
        let me = wingbeat_wire::VehicleId(1);
        let config = wingbeat_agent::Config::new(wingbeat_protocol::muscop::Config::new(me, me, 1));
        let clock = crate::Clock::real_time();
        let setups = crate::FlightSetups::new(config.coordination.clone(), Default::default());
        let agent = wingbeat_agent::Agent::new(config, 1, clock.now()).unwrap();
        driver::first_status(&agent, &clock, "one", true, &setups)
    }

    #[tokio::test(start_paused = true)]
    async fn the_watchdog_is_fed_only_while_every_task_turns_and_it_ends_with_the_driver() {
        let mut tasks = Liveness::default();
        let one = tasks.task("one", 2 * SECOND);
        let two = tasks.task("two", 2 * SECOND);
        let (sender, status) = watch::channel(Arc::new(a_status()));
        let notified = Arc::new(Mutex::new(Vec::new()));
        let received = notified.clone();
        let running = tokio::spawn(run(tasks, status, Some(4 * SECOND), move |states| {
            received.lock().unwrap().extend(states.iter().map(ToString::to_string));
        }));
        let feeds = || {
            let all = std::mem::take(&mut *notified.lock().unwrap());
            all.iter().filter(|line| *line == "WATCHDOG=1").count()
        };
        for _ in 0..10 {
            one.feed();
            two.feed();
            sleep(SECOND).await;
        }
        assert!((10..=11).contains(&feeds()), "four times in its period of four seconds");

        // The task that runs does not cover for the one that hangs.
        for _ in 0..10 {
            one.feed();
            sleep(SECOND).await;
        }
        assert!(feeds() <= 2, "at most until its limit has passed");
        two.feed();
        one.feed();
        sleep(2 * SECOND).await;
        assert!(feeds() >= 1, "it came back");

        let mut next = a_status();
        next.state = wingbeat_api::StateId::Landing;
        sender.send_replace(Arc::new(next));
        sleep(SECOND).await;
        assert!(notified.lock().unwrap().contains(&"STATUS=Landing".to_owned()));
        drop(sender);
        running.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_watchdog_period_systemd_is_not_notified() {
        let mut tasks = Liveness::default();
        let _one = tasks.task("one", SECOND);
        let (sender, status) = watch::channel(Arc::new(a_status()));
        let notified = Arc::new(Mutex::new(0));
        let received = notified.clone();
        let running = tokio::spawn(run(tasks, status, None, move |_| *received.lock().unwrap() += 1));
        sleep(10 * SECOND).await;
        drop(sender);
        running.await.unwrap();
        assert_eq!(*notified.lock().unwrap(), 0);
    }
}
