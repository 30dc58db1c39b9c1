/**
 * Pictures of the aircraft's symbols, drawn once and copied from then on: smooth edges are dear in every frame, most of all where a browser
 * draws without a graphics card. All are on one sheet, so that copies that follow each other are one step for the browser.
 */

/** What a picture covers, around its origin; CSS pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

type Paint = (context: CanvasRenderingContext2D) => void;

/** Room for the symbols of 512 aircraft, which is the most that a ground service has. */
const [WIDTH, HEIGHT] = [900, 800];

export class Sprites {
  readonly #sheet = document.createElement('canvas');
  readonly #places = new Map<string, readonly [number, number]>();
  /** The row that is being filled from the left, and how high it is so far. */
  #next = { x: 0, y: 0, height: 0 };

  constructor(readonly ratio: number) {
    this.#sheet.width = Math.ceil(WIDTH * ratio);
    this.#sheet.height = Math.ceil(HEIGHT * ratio);
  }

  /** Copies the picture of that name to the origin of the context; `paint` draws it around the origin the first time. */
  copy(context: CanvasRenderingContext2D, name: string, box: Box, paint: Paint): void {
    const [x, y] = this.#places.get(name) ?? this.#add(name, box, paint);
    const { ratio } = this;
    const { left, top, width, height } = box;
    context.drawImage(this.#sheet, x * ratio, y * ratio, width * ratio, height * ratio, left, top, width, height);
  }

  #add(name: string, { left, top, width, height }: Box, paint: Paint): readonly [number, number] {
    const context = this.#sheet.getContext('2d');
    if (this.#next.x + width > WIDTH) this.#next = { x: 0, y: this.#next.y + this.#next.height, height: 0 };
    if (this.#next.y + height > HEIGHT) {
      // What is still shown is drawn again when it is next copied.
      this.#places.clear();
      this.#next = { x: 0, y: 0, height: 0 };
      context?.resetTransform();
      context?.clearRect(0, 0, this.#sheet.width, this.#sheet.height);
    }
    const { x, y } = this.#next;
    this.#next = { x: x + width, y, height: Math.max(this.#next.height, height) };
    this.#places.set(name, [x, y]);
    if (context) {
      const { ratio } = this;
      context.setTransform(ratio, 0, 0, ratio, (x - left) * ratio, (y - top) * ratio);
      context.textAlign = 'center';
      context.textBaseline = 'middle';
      context.lineJoin = 'round';
      paint(context);
    }
    return [x, y];
  }
}
