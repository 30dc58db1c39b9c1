#!/usr/bin/env python3
"""Writes crates/autopilot/src/codec/vectors.rs: frames that pymavlink wrote, signed and not.

usage: signed_vectors.py > crates/autopilot/src/codec/vectors.rs        (needs pymavlink, any version)
"""

import os

os.environ["MAVLINK20"] = "1"
os.environ["MAVLINK_DIALECT"] = "ardupilotmega"
from pymavlink.dialects.v20 import ardupilotmega as dialect  # noqa: E402

KEY = bytes(range(32))
TIME = 0x0000_1234_5678_9ABC


class Sink:
    def write(self, _):
        pass


def rust(name, doc, frame):
    print(f"/// {doc}")
    print(f"pub(super) const {name}: [u8; {len(frame)}] = [")
    for i in range(0, len(frame), 16):
        print("    " + " ".join(f"{byte:#04x}," for byte in frame[i : i + 16]))
    print("];")


def main():
    mav = dialect.MAVLink(Sink(), srcSystem=3, srcComponent=1)
    mav.seq = 7
    heartbeat = dialect.MAVLink_heartbeat_message(2, 3, 81, 4, 3, 3)
    command = dialect.MAVLink_command_long_message(1, 1, 400, 0, 1, 0, 0, 0, 0, 0, 0)
    # mission_type is an extension field: MAVLink 1 leaves it behind.
    mission_ack = dialect.MAVLink_mission_ack_message(1, 1, 0, 2)
    print("// Written by tests/pymavlink/signed_vectors.py; do not edit.")
    rust("HEARTBEAT_V2", "Heartbeat of a quadrotor, not signed.", heartbeat.pack(mav))
    rust("HEARTBEAT_V1", "The same in MAVLink 1.", heartbeat.pack(mav, force_mavlink1=True))
    rust("MISSION_ACK_V2", "With an extension field.", mission_ack.pack(mav))
    mav.signing.secret_key = KEY
    mav.signing.link_id = 5
    mav.signing.timestamp = TIME
    mav.signing.sign_outgoing = True
    rust("HEARTBEAT_SIGNED", "Signed by the key 00 01 .. 1f, link 5, time 0x123456789abc.", heartbeat.pack(mav))
    rust("COMMAND_SIGNED", "The frame that was signed next: an arming command.", command.pack(mav))


main()
