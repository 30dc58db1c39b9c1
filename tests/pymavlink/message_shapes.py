#!/usr/bin/env python3
"""Writes crates/autopilot/src/codec/shapes.rs from MAVLink message definitions.

usage: message_shapes.py DEFINITIONS_FOLDER/ardupilotmega.xml > crates/autopilot/src/codec/shapes.rs

The definitions are those that the mavlink crate carries (mavlink/message_definitions/v1.0), so that the table
and the parser agree; a test in codec/table.rs compares the two. CRC_EXTRA and the order of fields are
https://mavlink.io/en/guide/serialization.html.
"""

import sys
import xml.etree.ElementTree as ET
from pathlib import Path

SIZES = {"char": 1, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "uint16_t": 2, "int32_t": 4, "uint32_t": 4, "float": 4}
SIZES |= {"int64_t": 8, "uint64_t": 8, "double": 8}


def crc(data, value=0xFFFF):
    for byte in data:
        t = byte ^ (value & 0xFF)
        t = (t ^ (t << 4)) & 0xFF
        value = (value >> 8) ^ (t << 8) ^ (t << 3) ^ (t >> 4)
    return value


def shape(message):
    base, extensions, is_extension = [], [], False
    for element in message:
        if element.tag == "extensions":
            is_extension = True
        elif element.tag == "field":
            kind, _, count = element.get("type").partition("[")
            kind = "uint8_t" if kind == "uint8_t_mavlink_version" else kind
            count = int(count.rstrip("]")) if count else 0
            (extensions if is_extension else base).append((kind, element.get("name"), count))
    base.sort(key=lambda field: -SIZES[field[0]])
    text = message.get("name") + " "
    value = crc(text.encode())
    for kind, name, count in base:
        value = crc(f"{kind} {name} ".encode(), value)
        if count:
            value = crc([count], value)
    length = lambda fields: sum(SIZES[kind] * max(count, 1) for kind, _, count in fields)
    return (value & 0xFF) ^ (value >> 8), length(base), length(base) + length(extensions)


def read(path, seen, messages):
    if path in seen:
        return
    seen.add(path)
    root = ET.parse(path).getroot()
    for include in root.findall("include"):
        read(path.parent / include.text, seen, messages)
    for message in root.iter("message"):
        messages[int(message.get("id"))] = (message.get("name"), *shape(message))


def main():
    messages = {}
    read(Path(sys.argv[1]), set(), messages)
    print("// Written by tests/pymavlink/message_shapes.py; do not edit.")
    print("use super::Row;")
    print()
    print("/// Every message of the dialect, by ascending id.")
    print("#[rustfmt::skip]")
    print(f"pub(super) const ROWS: [Row; {len(messages)}] = [")
    for number, (name, extra, base, full) in sorted(messages.items()):
        print(f"    Row {{ id: {number}, extra_crc: {extra}, base_len: {base}, full_len: {full} }}, // {name}")
    print("];")


main()
