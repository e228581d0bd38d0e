// Modal dialogs. The browser keeps the focus within them, and Escape closes them.

/** Opens a dialog, and gives the focus back when it is closed. */
export function openDialog(dialog) {
  const before = document.activeElement;
  dialog.onclose = () => {
    if (before instanceof HTMLElement && before.isConnected) before.focus();
  };
  dialog.showModal();
}

/** Offers bytes as a file to be saved. */
export function saveFile(blob, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  // The browser has begun to read it by then.
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
