"use strict";

// Search without a network: every part whose words begin with all the words that were typed, titles first.
(() => {
  const box = document.getElementById("search");
  const input = box.querySelector("input");
  const list = box.querySelector("ol");
  const parts = window.searchIndex.map(([address, page, title, text]) => ({
    address, page, title, text, heading: ` ${page} ${title}`.toLowerCase(), words: ` ${text}`.toLowerCase(),
  }));
  box.hidden = false;

  const score = (part, words) => {
    let sum = 0;
    for (const word of words) {
      const inHeading = part.heading.includes(word);
      if (!inHeading && !part.words.includes(word)) return 0;
      sum += (inHeading ? 4 : 1) + (part.heading.includes(` ${word}`) ? 4 : 0) + (part.words.includes(` ${word}`) ? 1 : 0);
    }
    return sum;
  };

  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/).filter((word) => word.length > 1);
    const found = words.length === 0 ? [] : parts.map((part) => [score(part, words), part]).filter(([sum]) => sum > 0);
    found.sort(([first], [second]) => second - first);
    list.replaceChildren(...found.slice(0, 12).map(([, part]) => {
      const item = document.createElement("li");
      const link = document.createElement("a");
      link.href = part.address;
      link.textContent = part.title === part.page ? part.page : `${part.page}: ${part.title}`;
      const excerpt = document.createElement("small");
      const at = Math.max(0, part.words.indexOf(words[0]) - 40);
      excerpt.textContent = part.text.slice(at, at + 120);
      item.append(link, " ", excerpt);
      return item;
    }));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      input.value = "";
      list.replaceChildren();
    }
  });
})();
