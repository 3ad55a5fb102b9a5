// What is pleasant and not needed: buttons that copy, and the keyboard where something has happened.
"use strict";

(() => {
  if (navigator.clipboard) {
    for (const text of document.querySelectorAll("[data-copy]")) {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "quiet";
      button.textContent = "Copy";
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text.textContent);
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 1500);
      });
      if (text.tagName === "PRE") {
        const around = document.createElement("div");
        around.className = "copied";
        text.replaceWith(around);
        around.append(text, button);
      } else {
        text.after(button);
      }
    }
  }
  const happened = ["answers", "error", "notice"].map((id) => document.getElementById(id)).find(Boolean);
  if (happened) happened.focus();
})();
