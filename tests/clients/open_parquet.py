"""Opens the tables that `log export --to parquet` and `bench merge --parquet` write.

Usage: open_parquet.py TRACKS FLIGHTS FLIGHTS_AS_CSV
"""

import sys

import polars


def main():
    tracks, flights, csv = polars.read_parquet(sys.argv[1]), polars.read_parquet(sys.argv[2]), polars.read_csv(sys.argv[3])

    assert tracks.columns == [
        "aircraft", "time_s", "unix_us", "latitude_deg", "longitude_deg", "altitude_m", "height_m", "east_m",
        "north_m", "speed_m_s", "heading_rad",
    ], tracks.columns
    assert tracks.schema["aircraft"] == polars.String and tracks.schema["unix_us"] == polars.Int64
    # The same log twice: its rows twice, in order.
    half = tracks.height // 2
    assert half > 100 and tracks[:half].equals(tracks[half:]), tracks
    assert tracks[:half]["time_s"].is_sorted() and tracks["time_s"][0] == 0.0
    assert tracks["latitude_deg"].is_between(39.0, 40.0).all(), tracks["latitude_deg"]
    assert 4.0 < tracks["height_m"].max() < 20.0, tracks["height_m"].max()

    # What the CSV file has, cell by cell.
    assert sorted(flights.columns) == sorted(csv.columns), (flights.columns, csv.columns)
    assert flights.height == csv.height == 2
    assert flights.schema["is_good"] == polars.Boolean and flights.schema["seed"] == polars.Int64
    for name in csv.columns:
        expected, found = csv[name].to_list(), flights[name].to_list()
        assert [str(value) for value in expected] == [str(value) for value in found] or all(
            one == other or abs(float(one) - float(other)) < 1e-9 for one, other in zip(expected, found)
        ), (name, expected, found)
    print("done")


main()
