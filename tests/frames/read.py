"""Reads a file with pymavlink: prints the seconds, writes each frame behind its length (two bytes).

usage: read.py IN OUT
"""

import os
import sys
import time

os.environ["MAVLINK20"] = "1"
from pymavlink.dialects.v20 import ardupilotmega as dialect  # noqa: E402

PIECE = 16 * 1024


def main():
    data = open(sys.argv[1], "rb").read()
    mav = dialect.MAVLink(None)
    mav.robust_parsing = True
    messages = []
    began = time.perf_counter()
    for at in range(0, len(data), PIECE):
        messages += mav.parse_buffer(data[at : at + PIECE]) or []
    print(time.perf_counter() - began)
    with open(sys.argv[2], "wb") as out:
        for message in messages:
            if message.get_type() not in ("BAD_DATA",) and not message.get_type().startswith("UNKNOWN"):
                frame = bytes(message.get_msgbuf())
                out.write(len(frame).to_bytes(2, "little") + frame)


main()
