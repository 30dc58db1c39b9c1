// Writes each text file of the built page again, compressed by gzip and brotli: the ground service serves what the browser accepts.
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { brotliCompressSync, gzipSync } from 'node:zlib';

/** Files below this size gain nothing by compression, bytes. */
const COMPRESSED_FROM = 1_000;
/** The whole page by the larger of the two, bytes: a field's Wi-Fi is slow. */
const TOTAL_MAX = 700_000;
const TEXT = /\.(js|css|html|svg|json|webmanifest)$/;

const folder = process.argv[2] ?? 'dist';
const total = { plain: 0, gzip: 0, brotli: 0 };
for (const entry of readdirSync(folder, { recursive: true, withFileTypes: true })) {
  if (!entry.isFile() || !TEXT.test(entry.name)) continue;
  const path = join(entry.parentPath ?? entry.path, entry.name);
  const bytes = readFileSync(path);
  if (bytes.length < COMPRESSED_FROM) continue;
  const [gzip, brotli] = [gzipSync(bytes, { level: 9 }), brotliCompressSync(bytes)];
  writeFileSync(`${path}.gz`, gzip);
  writeFileSync(`${path}.br`, brotli);
  total.plain += bytes.length;
  total.gzip += gzip.length;
  total.brotli += brotli.length;
}
console.log(`compressed ${total.plain} bytes to ${total.gzip} (gzip), ${total.brotli} (brotli)`);
if (total.gzip > TOTAL_MAX) {
  console.error(`${folder}: found ${total.gzip} bytes by gzip, expected at most ${TOTAL_MAX}`);
  process.exit(1);
}
