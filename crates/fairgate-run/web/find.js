// Finding a class of the tree by what the user writes. Customers have identifiers that look like the numbers of
// classes, so a number is one of a class only behind "class:".

/** Reads an address: its value, and how many bits it has. Returns nothing if the text is none. */
export function readAddress(text) {
  const four = /^(\d{1,3})\.(\d{1,3})\.(\d{1,3})\.(\d{1,3})$/.exec(text);
  if (four) {
    const bytes = four.slice(1).map(Number);
    if (bytes.some((byte) => byte > 255)) return null;
    return { bits: 32n, value: bytes.reduce((all, byte) => (all << 8n) | BigInt(byte), 0n) };
  }
  if (!/^[0-9a-f:]*:[0-9a-f:]*$/.test(text)) return null;
  const [before, after, ...others] = text.split("::").map((half) => (half ? half.split(":") : []));
  const missing = 8 - before.length - (after?.length ?? 0);
  if (others.length || (after ? missing < 1 : missing !== 0)) return null;
  const words = after ? [...before, ...Array(missing).fill("0"), ...after] : before;
  if (!words.every((word) => /^[0-9a-f]{1,4}$/.test(word))) return null;
  return { bits: 128n, value: words.reduce((all, word) => (all << 16n) | BigInt(`0x${word}`), 0n) };
}

/** Returns whether an address is one of a prefix: 10.0.0.0/8, or an address. */
function holds(prefix, { bits, value }) {
  const [text, length] = prefix.split("/");
  const first = readAddress(text);
  return first?.bits === bits && (first.value ^ value) >> (bits - BigInt(length ?? bits)) === 0n;
}

/** Those of a class with this number, or with this path from the root: and of all that is in it. */
function byNumber(number) {
  const isIt = ({ path }) => path === number || path.endsWith(`/${number}`) || path.startsWith(`${number}/`);
  return (place) => (number && isIt(place) ? 0 : null);
}

/** Says how well a subscriber fits what is wanted: 0 is best. Returns null if it does not fit. */
function rankOf(subscriber, wanted, address) {
  const { prefixes } = subscriber;
  const [id, name] = [subscriber.id, subscriber.name ?? ""].map((word) => word.toLowerCase());
  if (id === wanted || name === wanted) return 0;
  if (address && prefixes.some((prefix) => holds(prefix, address))) return 0;
  // Another address only begins like one that is written to its end.
  const addresses = address ? [] : prefixes;
  if ([id, name].some((word) => word.startsWith(wanted))) return 1;
  if (addresses.some((prefix) => prefix.startsWith(wanted))) return 2;
  return [id, name, ...addresses].some((word) => word.includes(wanted)) ? 3 : null;
}

/** Returns the subscribers that fit a text, the best ones first. */
export function findSubscribers(text, subscribers) {
  const wanted = text.trim().toLowerCase();
  const address = readAddress(wanted);
  const ranked = subscribers.map((one) => [one, rankOf(one, wanted, address)]).filter(([, rank]) => rank !== null);
  return ranked.sort(([, one], [, other]) => one - other).map(([one]) => one);
}

/**
 * Returns a function of a place and of the subscriber that it belongs to, if it does. It says how well the place
 * fits: 0 is best. It returns null if it does not fit at all.
 */
export function finder(text) {
  const wanted = text.trim().toLowerCase();
  if (wanted.startsWith("class:")) return byNumber(wanted.slice("class:".length).trim());
  const address = readAddress(wanted);
  return (place, subscriber) => {
    const rank = subscriber ? rankOf(subscriber, wanted, address) : null;
    if (rank !== null) return rank;
    const host = place.host ?? "";
    const own = (place.name ?? "").toLowerCase();
    if (host === wanted || own === wanted) return 0;
    if (own.startsWith(wanted)) return 1;
    if (own.includes(wanted)) return 3;
    const words = [place.discipline ?? "inner class", host, place.path === "root" ? "root" : ""];
    return words.some((word) => word.includes(wanted)) ? 4 : null;
  };
}
