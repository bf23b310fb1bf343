"use strict";
// Light or dark, as the system has it until the reader chooses.
(() => {
  const remembered = {
    // Pages from a disk may have no storage.
    get(key) { try { return localStorage.getItem(key); } catch { return null; } },
    set(key, value) { try { localStorage.setItem(key, value); } catch { /* not kept */ } },
  };

  function theme() {
    const root = document.documentElement;
    const button = document.getElementById("theme");
    const system = matchMedia("(prefers-color-scheme: dark)");
    const chosen = remembered.get("memlint-theme");
    if (chosen === "dark" || chosen === "light") root.dataset.theme = chosen;
    const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const show = () => button.setAttribute("aria-pressed", String(isDark()));
    button.addEventListener("click", () => {
      root.dataset.theme = isDark() ? "light" : "dark";
      remembered.set("memlint-theme", root.dataset.theme);
      show();
    });
    system.addEventListener("change", show);
    button.hidden = false;
    show();
  }

  theme();
})();
