// Requests to the API that this page comes from: docs/api.md.

const KEY = "fairgate-token";

/** What the API refuses: a problem of RFC 9457. A status of 0 says that nothing answered. */
export class Refused extends Error {
  constructor(status, problem, etag) {
    super(problem.detail ?? problem.title ?? `The API answers with status ${status}.`);
    this.status = status;
    this.errors = problem.errors ?? [];
    this.etag = etag;
  }
}

let token = sessionStorage.getItem(KEY);
let askForToken = () => Promise.reject(new Refused(401, { detail: "a token is missing" }));
let asking = null;

/** Says who asks the user for a token. It is called with whether there was one, and returns the token. */
export function onUnauthorized(ask) {
  askForToken = ask;
}

async function send(method, path, { body, match } = {}) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (body !== undefined) headers["Content-Type"] = "application/json";
  if (match) headers["If-Match"] = match;
  const text = body === undefined ? undefined : JSON.stringify(body);
  try {
    return await fetch(path, { method, headers, body: text, cache: "no-store" });
  } catch {
    throw new Refused(0, { detail: "The run does not answer. It may have ended, or the connection is lost." });
  }
}

async function request(method, path, options) {
  let response = await send(method, path, options);
  while (response.status === 401) {
    const used = token;
    // All requests wait for the same answer of the user.
    asking ??= askForToken(used !== null).finally(() => {
      asking = null;
    });
    token = await asking;
    sessionStorage.setItem(KEY, token);
    response = await send(method, path, options);
    if (response.status === 401 && token !== used) sessionStorage.removeItem(KEY);
  }
  if (!response.ok) {
    const problem = await response.json().catch(() => ({}));
    throw new Refused(response.status, problem, response.headers.get("ETag"));
  }
  return response;
}

const query = (parameters) => {
  const given = Object.entries(parameters).filter(([, value]) => value !== undefined && value !== null);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

/** Returns a document. */
export async function get(path, parameters = {}) {
  return (await request("GET", path + query(parameters))).json();
}

/** Returns a document and its entity tag. */
export async function getTagged(path, parameters = {}) {
  const response = await request("GET", path + query(parameters));
  return { document: await response.json(), etag: response.headers.get("ETag") };
}

/** Returns the bytes of a file. */
export async function download(path) {
  return (await request("GET", path)).blob();
}

/** Sends a document, and returns the answer as text. */
export async function post(path, body) {
  return (await request("POST", path, { body })).text();
}

export const nodePath = (name) => `/v1/nodes/${encodeURIComponent(name)}`;

export const subscriberPath = (id) => `/v1/subscribers/${encodeURIComponent(id)}`;

/** Returns a subscriber and its own entity tag. */
export async function getSubscriber(id) {
  return getTagged(subscriberPath(id));
}

/** Changes members of a subscriber if it still has this tag. Returns the answer and the new tag. */
export async function patchSubscriber(id, members, match) {
  const response = await request("PATCH", subscriberPath(id), { body: members, match });
  return { document: await response.json(), etag: response.headers.get("ETag") };
}

/**
 * Changes members of several subscribers if the trees still have this tag, or for so many seconds. Returns the
 * answer and the new tag.
 */
export async function patchSubscribers(subscribers, match, time) {
  const response = await request("PATCH", "/v1/subscribers", { body: { subscribers, for_s: time }, match });
  return { document: await response.json(), etag: response.headers.get("ETag") };
}

/** Changes the rates of a node if the trees still have this tag. Returns the answer and the new tag. */
export async function patchNode(name, rates, match) {
  const response = await request("PATCH", nodePath(name), { body: rates, match });
  return { document: await response.json(), etag: response.headers.get("ETag") };
}

/** Changes trees if they still have this tag. Returns the answer and the new tag. */
export async function change(from, lines, match) {
  const response = await request("POST", "/v1/changes", { body: { from, lines }, match });
  return { document: await response.json(), etag: response.headers.get("ETag") };
}
