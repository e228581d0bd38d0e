// Numbers as people read them. Units are those of the API: bits per second, bytes, milliseconds.

const scaled = (value, base, units) => {
  let step = 0;
  // What would be rounded to the base is a whole one of the next unit.
  while (Math.abs(value) >= 0.9995 * base && step < units.length - 1) {
    value /= base;
    step += 1;
  }
  return [value, units[step]];
};

/** Three digits, no more: 9.996 is 10.0. */
export function digits(value) {
  const size = Math.abs(value);
  if (size >= 99.95 || value === 0) return String(Math.round(value));
  if (size >= 9.995) return value.toFixed(1);
  return size >= 0.095 ? value.toFixed(2) : value.toPrecision(1);
}

export const none = "–";

export function rate(bps) {
  if (bps === null || bps === undefined) return none;
  const [value, unit] = scaled(bps, 1000, ["bit/s", "kbit/s", "Mbit/s", "Gbit/s", "Tbit/s"]);
  return `${digits(value)} ${unit}`;
}

export function bytes(count) {
  if (count === null || count === undefined) return none;
  const [value, unit] = scaled(count, 1000, ["B", "kB", "MB", "GB", "TB", "PB"]);
  return `${digits(value)} ${unit}`;
}

export function delay(ms) {
  if (ms === null || ms === undefined) return none;
  if (ms >= 1000) return `${digits(ms / 1000)} s`;
  if (ms >= 1 || ms === 0) return `${digits(ms)} ms`;
  return `${digits(ms * 1000)} µs`;
}

export function perSecond(count) {
  if (count === null || count === undefined) return none;
  return count === 0 ? "0" : count < 0.01 ? "<0.01" : digits(count);
}

export const count = (number) => number.toLocaleString("en");
export const percent = (share) => `${digits(share * 100)} %`;

export function duration(seconds) {
  if (seconds < 100) return `${Math.round(seconds)} s`;
  if (seconds < 6000) return `${Math.round(seconds / 60)} min`;
  return seconds < 172_800 ? `${digits(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} days`;
}

/** The time of day, with seconds if `fine`. */
export function clock(unixSeconds, fine = true) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  if (fine) options.second = "2-digit";
  return new Date(unixSeconds * 1000).toLocaleTimeString("en-GB", options);
}

/** Reads a rate as configuration files have it: "12500kbit". Returns nothing if it is none. */
export function readRate(text) {
  const parts = /^([0-9.]+)([kmgt]?)bit$/.exec(text ?? "");
  if (!parts) return null;
  return Number(parts[1]) * { "": 1, k: 1e3, m: 1e6, g: 1e9, t: 1e12 }[parts[2]];
}

/** A time of Unix, as clocks here show it: 18:00, or with the date if it is not within a day. */
export function until(seconds) {
  const time = new Date(seconds * 1000);
  const minute = time.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" });
  const isNear = Math.abs(time - Date.now()) < 86_400_000;
  return isNear ? minute : `${time.toLocaleDateString("en-GB", { day: "numeric", month: "long" })} ${minute}`;
}
