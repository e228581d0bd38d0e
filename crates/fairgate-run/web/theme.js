// Light, dark, or as the system has it. The choice is kept in this browser.

import { byId } from "./dom.js";

const KEY = "fairgate-theme";
const THEMES = ["auto", "light", "dark"];
const SIGNS = { auto: "◐", light: "○", dark: "●" };
const NAMES = { auto: "automatic", light: "light", dark: "dark" };
const dark = matchMedia("(prefers-color-scheme: dark)");

/** Storage may be forbidden. Then the choice lasts as long as the page. */
function stored() {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

let theme = THEMES.includes(stored()) ? stored() : "auto";

function apply() {
  const isDark = theme === "dark" || (theme === "auto" && dark.matches);
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
  const button = byId("theme");
  button.textContent = SIGNS[theme];
  button.setAttribute("aria-label", `Theme: ${NAMES[theme]}`);
  document.dispatchEvent(new Event("theme"));
}

byId("theme").addEventListener("click", () => {
  theme = THEMES[(THEMES.indexOf(theme) + 1) % THEMES.length];
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It lasts as long as the page.
  }
  apply();
});
dark.addEventListener("change", apply);
apply();
