"""Drives MAVProxy as a person does: each command is typed when the answer to the one before it was printed.

Usage: fly_mavproxy.py tcp:HOST:PORT VERSION
"""

import os
import queue
import subprocess
import sys
import tempfile
import threading
import time

address, version = sys.argv[1:3]
is_new = not version.startswith("3.")
WAIT_S = 60.0
state = tempfile.TemporaryDirectory()


def in_state(name, text):
    path = os.path.join(state.name, name)
    with open(path, "w") as file:
        file.write(text)
    return path


HOME = (39.4824, -0.3464)


def lines(points):
    rows = ["QGC WPL 110"]
    for i, (frame, command, p1, north, east, z) in enumerate(points):
        place = "%.7f\t%.7f" % (HOME[0] + north, HOME[1] + east)
        rows.append("%d\t0\t%d\t%d\t%g\t0\t0\t0\t%s\t%g\t1" % (i, frame, command, p1, place, z))
    return "\n".join(rows) + "\n"


route = in_state("route.txt", lines([(0, 16, 0, 0, 0, 10), (3, 22, 0, 0, 0, 10), (3, 16, 0, 3e-4, 0, 12)]))
fence = in_state("fence.txt", lines([(3, 5001, 3, 1e-3, 0, 0), (3, 5001, 3, 1e-3, 1e-3, 0), (3, 5001, 3, -1e-3, 0, 0)]))
rally = in_state("rally.txt", lines([(3, 5100, 0, 2e-4, 0, 15)]))

# What is typed, and what is printed then.
steps = [("wp load " + route, "Flight plan received"), ("wp list", "Saved 3 waypoints")]
if is_new:
    steps += [
        ("fence load " + fence, "Sent all"),
        ("fence list", "Requesting 3 fence"),
        ("rally load " + rally, "Rally points received"),
        ("rally list", "Saved 1"),
        ("ftp list /", "D @PARAM"),
        ("fence clear", ""),
        ("rally clear", ""),
    ]
steps += [("log list", "No logs")]
if is_new:
    # Today's MAVProxy sets modes by a command that 3.5.7 does not know.
    steps += [
        ("mode GUIDED", "Mode GUIDED"),
        ("arm throttle", "ARMED"),
        ("takeoff 10", "height 15"),
        ("mode LAND", "Mode LAND"),
        ("", "DISARMED"),
    ]

env = dict(os.environ, HOME=state.name, TERM="dumb")
mavproxy = os.path.join(os.path.dirname(sys.executable), "mavproxy.py")
modules = "param,wp,fence,rally,ftp,log,mode,rc,arm,misc,cmdlong,output"
process = subprocess.Popen(
    [sys.executable, "-u", mavproxy, "--master=" + address, "--default-modules=" + modules, "--aircraft=one",
     "--state-basedir=" + state.name],
    cwd=state.name, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
)
printed = queue.Queue()
threading.Thread(target=lambda: [printed.put(line) for line in process.stdout], daemon=True).start()


def wait_for(words):
    end = time.monotonic() + WAIT_S
    while time.monotonic() < end:
        try:
            line = printed.get(timeout=0.1)
        except queue.Empty:
            continue
        print("| " + line.rstrip())
        if words in line:
            return
    process.kill()
    print("FAILED: %r was not printed in %.0f s" % (words, WAIT_S))
    sys.exit(1)


wait_for("Received")
for typed, words in steps:
    if typed:
        print("> " + typed, flush=True)
        process.stdin.write(typed + "\n")
        process.stdin.flush()
    if words:
        wait_for(words)
process.kill()
print("done")
