//! A serial line that is unplugged a thousand times leaves nothing behind. The only test of its program, so
//! that what the process holds is what the link holds.

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use tokio_serial::{SerialPort as _, SerialStream};
use wingbeat_link::{Backoff, Link, LinkEvent};

/// Longer than anything here takes on a loaded machine: what misses it hangs.
const PATIENCE: Duration = Duration::from_secs(60);
const CYCLES: usize = 1_000;
/// After so many, whatever is allocated once has been.
const WARM: usize = 100;
/// Memory that an allocator may keep for itself, kilobytes. A task, its channels and its 4 kB buffer leaked
/// 900 times would be 10 MB.
const SLACK_KB: usize = 4_096;

#[derive(Clone, Copy, Debug)]
struct Held {
    descriptors: usize,
    tasks: usize,
    memory_kb: usize,
}

fn held() -> Held {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let memory = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    Held {
        descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
        tasks: tokio::runtime::Handle::current().metrics().num_alive_tasks(),
        memory_kb: memory.split_whitespace().next().unwrap().parse().unwrap(),
    }
}

/// A folder of its own, removed at the end of the test.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A new device under the name of the old one, as a USB adapter that is plugged in again.
fn plug(name: &Path) -> SerialStream {
    let (far, near) = SerialStream::pair().unwrap();
    let new = name.with_extension("new");
    symlink(near.name().unwrap(), &new).unwrap();
    drop(near);
    // At once, so that the link never finds half a name.
    fs::rename(new, name).unwrap();
    far
}

async fn next(link: &mut Link) -> LinkEvent {
    timeout(PATIENCE, link.recv()).await.expect("an event").expect("a running task")
}

#[tokio::test]
async fn a_thousand_unplugs_leave_no_descriptor_no_task_no_memory_and_no_exit() {
    let folder = std::env::temp_dir().join(format!("wingbeat-unplug-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let folder = Folder(folder);
    let name = folder.0.join("ttyFC");
    let backoff = Backoff { least: Duration::from_millis(1), most: Duration::from_millis(2) };
    let mut link =
        Link::spawn_with(format!("serial:{}:921600", name.display()).parse().unwrap(), backoff, || {});

    let mut warm = None;
    for cycle in 0..CYCLES {
        let mut far = plug(&name);
        while next(&mut link).await != LinkEvent::Up {}
        // It carries bytes both ways each time, and not those of an earlier cycle.
        let (telemetry, order) = ([cycle as u8, (cycle >> 8) as u8, 1], [cycle as u8, (cycle >> 8) as u8, 2]);
        far.write_all(&telemetry).await.unwrap();
        let mut received = vec![];
        while received.len() < telemetry.len() {
            match next(&mut link).await {
                LinkEvent::Bytes(bytes) => received.extend(bytes),
                other => panic!("cycle {cycle}: expected bytes, found {other:?}"),
            }
        }
        assert_eq!(received, telemetry, "cycle {cycle}");
        link.send(order.to_vec()).unwrap();
        let mut received = [0; 3];
        timeout(PATIENCE, far.read_exact(&mut received)).await.unwrap().unwrap();
        assert_eq!(received, order, "cycle {cycle}");

        drop(far);
        let LinkEvent::Down { reason } = next(&mut link).await else {
            panic!("cycle {cycle}: expected Down")
        };
        assert!(reason.contains("ttyFC"), "cycle {cycle}: {reason}");
        if cycle == WARM {
            warm = Some(held());
        }
    }
    let (before, after) = (warm.unwrap(), held());
    assert!(after.descriptors <= before.descriptors, "{before:?} {after:?}");
    assert!(after.tasks <= before.tasks, "{before:?} {after:?}");
    assert!(after.memory_kb <= before.memory_kb + SLACK_KB, "{before:?} {after:?}");
}
