// Brings what changed into the page that is open: it asks for the same page again and changes only what is different, so
// that focus, selection, what is folded out and where one has scrolled to stay.
"use strict";
(() => {
  const pause = 1000 * Math.max(Number(document.currentScript.dataset.every) || 5, 1);

  // Children with an id and links are found again by what they are, others by their place: a link that has the focus does
  // not become another one.
  const key = (node) => node.id || (node.localName === "a" && node.getAttribute("href")) || "";

  // become makes one node like another one.
  const become = (from, to) => {
    for (const { name } of [...from.attributes]) {
      if (!to.hasAttribute(name) && !(name === "open" && from.localName === "details")) from.removeAttribute(name);
    }
    for (const { name, value } of to.attributes) {
      if (from.getAttribute(name) !== value) from.setAttribute(name, value);
    }
    const named = new Map([...from.children].filter(key).map((child) => [key(child), child]));
    let at = from.firstChild;
    for (const wanted of [...to.childNodes]) {
      let here = key(wanted) ? named.get(key(wanted)) : at;
      if (here && key(here) !== key(wanted)) here = null;
      if (!here || here.nodeName !== wanted.nodeName) {
        from.insertBefore(document.importNode(wanted, true), at);
        continue;
      }
      if (here === at) at = at.nextSibling;
      else from.insertBefore(here, at);
      if (here.nodeType !== Node.ELEMENT_NODE) {
        if (here.data !== wanted.data) here.data = wanted.data;
      } else if (!here.isEqualNode(wanted)) become(here, wanted);
    }
    while (at) {
      const next = at.nextSibling;
      at.remove();
      at = next;
    }
  };

  const told = (text) => {
    let line = document.getElementById("lost");
    if (!text) return line?.remove();
    if (!line) {
      line = document.createElement("p");
      line.id = "lost";
      line.className = "banner bad";
      line.setAttribute("role", "status");
      document.body.insertBefore(line, document.getElementById("main"));
    }
    if (line.textContent !== text) line.textContent = text;
  };

  const ask = async () => {
    let answer;
    try {
      answer = await fetch(location.href, { cache: "no-store", redirect: "error" });
    } catch {
      return told("✕ The plugin does not answer any more. What you see is old. Start it again, and open its new address.");
    }
    if (!(answer.headers.get("Content-Type") || "").startsWith("text/html")) {
      return told("✕ This address has ended. Open the one that the plugin printed last.");
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const main = page.getElementById("main");
    if (!main) return;
    told("");
    const had = document.activeElement;
    document.title = page.title;
    become(document.getElementById("main"), main);
    if (had && had !== document.activeElement && had.isConnected) had.focus({ preventScroll: true });
  };

  let asking = false;
  const again = async () => {
    if (asking || document.hidden) return;
    asking = true;
    try {
      await ask();
    } finally {
      asking = false;
    }
  };
  setInterval(again, pause);
  document.addEventListener("visibilitychange", again);
  document.addEventListener("click", (event) => {
    if (event.target.id === "again" && !event.ctrlKey && !event.metaKey && !event.shiftKey) {
      event.preventDefault();
      again();
    }
  });
})();
