"use strict";
// All that the page tells stands in it without this: here is what filters and zooms.
(() => {
  const byId = (id) => document.getElementById(id);

  function filter() {
    const form = byId("filter");
    if (!form) return;
    const findings = [...document.querySelectorAll("[data-finding]")];
    const verdicts = [...form.querySelectorAll("[name=verdict]")];
    const apply = () => {
      const wanted = new Set(verdicts.filter((one) => one.checked).map((one) => one.value));
      const code = form.elements.code.value;
      const text = form.elements.text.value.trim().toLowerCase();
      let shown = 0;
      for (const one of findings) {
        const fits = wanted.has(one.dataset.verdict)
          && (!code || one.dataset.code === code)
          && (!text || one.textContent.toLowerCase().includes(text));
        one.hidden = !fits;
        shown += fits;
      }
      byId("shown").textContent = `${shown} of ${findings.length} shown`;
    };
    const setOpen = (open) => {
      for (const one of findings) if ("open" in one && !one.hidden) one.open = open;
    };
    form.addEventListener("input", apply);
    form.addEventListener("submit", (event) => event.preventDefault());
    byId("open-all").addEventListener("click", () => setOpen(true));
    byId("close-all").addEventListener("click", () => setOpen(false));
    form.hidden = false;
    apply();
  }

  function timeline() {
    const region = byId("lanes");
    if (!region) return;
    const lanes = region.firstElementChild;
    const readout = byId("operation");
    const bars = [...region.querySelectorAll(".bars rect")];
    const largest = 64;
    let zoom = 1;
    let chosen = -1;

    const setZoom = (wanted) => {
      const next = Math.min(largest, Math.max(1, wanted));
      const middle = region.scrollLeft + region.clientWidth / 2;
      lanes.style.setProperty("--zoom", String(next));
      lanes.toggleAttribute("data-fine", next >= 8);
      region.scrollLeft = middle * (next / zoom) - region.clientWidth / 2;
      zoom = next;
    };
    const tell = (bar) => {
      const lane = bar.closest(".lane").querySelector(".label .place").textContent.trim();
      readout.textContent = `${bar.firstElementChild.textContent}, ${lane.replace(/\s+/g, " ")}`;
    };
    const choose = (index) => {
      if (bars[chosen]) bars[chosen].classList.remove("chosen");
      chosen = Math.min(bars.length - 1, Math.max(0, index));
      bars[chosen].classList.add("chosen");
      bars[chosen].scrollIntoView({ block: "nearest", inline: "nearest" });
      tell(bars[chosen]);
    };
    const actions = {
      in: () => setZoom(zoom * 2),
      out: () => setZoom(zoom / 2),
      reset: () => setZoom(1),
    };
    const keys = {
      "+": actions.in, "=": actions.in, "-": actions.out, "0": actions.reset,
      n: () => choose(chosen + 1), p: () => choose(chosen - 1),
    };
    for (const button of byId("zoom").querySelectorAll("[data-zoom]")) {
      button.addEventListener("click", actions[button.dataset.zoom]);
    }
    region.addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
      event.preventDefault();
      keys[event.key]();
    });
    region.addEventListener("pointerover", (event) => {
      if (event.target.matches(".bars rect")) tell(event.target);
    });
    byId("zoom").hidden = false;
    readout.hidden = false;
  }

  filter();
  timeline();
})();
