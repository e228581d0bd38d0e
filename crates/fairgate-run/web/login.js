// Asks for the token. It is kept in the session storage of this tab, and is never part of an address.

import { byId } from "./dom.js";
import { openDialog } from "./dialog.js";

/** Asks for a token. Returns it when the user has written one. */
export function askForToken(wasWrong) {
  const dialog = byId("login");
  const wrong = byId("login-wrong");
  const field = byId("login-token");
  wrong.hidden = !wasWrong;
  wrong.textContent = wasWrong ? "This token is not in the run's file. Try another one." : "";
  field.value = "";
  field.setAttribute("aria-invalid", String(wasWrong));
  if (!dialog.open) openDialog(dialog);
  field.focus();
  return new Promise((resolve) => {
    byId("login-form").onsubmit = (event) => {
      // The browser sends no form: the policy of the page forbids it.
      event.preventDefault();
      dialog.close();
      resolve(field.value.trim());
    };
    // Without a token there is nothing to see, so it can't be left.
    dialog.oncancel = (event) => event.preventDefault();
  });
}
