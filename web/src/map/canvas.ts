/** The canvases that lie over a map. */

/** Empties a canvas that is to have the size that it has on the page, in the screen's own pixels; what draws on it counts in the page's. */
export function cleared(canvas: HTMLCanvasElement): CanvasRenderingContext2D | undefined {
  const ratio = window.devicePixelRatio || 1;
  const [width, height] = [Math.round(canvas.clientWidth * ratio), Math.round(canvas.clientHeight * ratio)];
  const context = canvas.getContext('2d') ?? undefined;
  // To set a size takes a new bitmap, even where it is the same.
  if (canvas.width !== width || canvas.height !== height) [canvas.width, canvas.height] = [width, height];
  context?.setTransform(ratio, 0, 0, ratio, 0, 0);
  context?.clearRect(0, 0, canvas.clientWidth, canvas.clientHeight);
  return context;
}
