/** The grid of meridians and parallels that stands in for a map: spacing, places and labels. */

/** Metres of one degree of latitude, near enough for a label (WGS84: 110.6 to 111.7 km). */
export const METRES_PER_DEGREE = 111_132;

const NICE = [1, 2, 5];

/** The smallest of 1, 2, 5 times a power of ten degrees that keeps lines at least `minPx` apart. */
export function spacingDeg(degPerPx: number, minPx: number): number {
  const least = Math.min(Math.max(degPerPx * minPx, 1e-7), 50);
  const decade = Math.floor(Math.log10(least));
  for (const exponent of [decade, decade + 1]) {
    for (const factor of NICE) {
      // Written and read back, 1-2-5 steps are the shortest decimals: 0.0005, not 0.0005000000000000001.
      const spacing = Number(`${factor}e${exponent}`);
      if (spacing >= least) return spacing;
    }
  }
  return 50;
}

/** Number of decimals by which two neighbouring lines differ. */
export function decimals(spacing: number): number {
  return Math.max(0, -Math.floor(Math.log10(spacing) + 1e-9));
}

/** Multiples of `spacing` between two bounds. At most 200, whatever the bounds. */
export function lines(fromDeg: number, toDeg: number, spacing: number): number[] {
  const first = Math.ceil(fromDeg / spacing);
  const last = Math.min(Math.floor(toDeg / spacing), first + 199);
  const places = decimals(spacing);
  return Array.from({ length: Math.max(0, last - first + 1) }, (_, index) => Number(((first + index) * spacing).toFixed(places)));
}

export function latitudeLabel(degrees: number, spacing: number): string {
  return `${Math.abs(degrees).toFixed(decimals(spacing))}°${degrees < 0 ? 'S' : 'N'}`;
}

export function longitudeLabel(degrees: number, spacing: number): string {
  const wrapped = ((((degrees + 180) % 360) + 360) % 360) - 180;
  return `${Math.abs(wrapped).toFixed(decimals(spacing))}°${wrapped < 0 ? 'W' : 'E'}`;
}

/** How large a cell of the grid is on the ground: "111 m". */
export function cellMetres(spacing: number, latitudeDeg: number, along: 'meridian' | 'parallel'): string {
  const shrink = along === 'parallel' ? Math.cos((latitudeDeg * Math.PI) / 180) : 1;
  const metres = spacing * METRES_PER_DEGREE * shrink;
  return metres >= 9_950 ? `${Math.round(metres / 1000)} km` : metres >= 9.95 ? `${Math.round(metres)} m` : `${metres.toFixed(1)} m`;
}
