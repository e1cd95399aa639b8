// The draft of the playground as this tab keeps it: its texts over a reload, its key only as long as the page lives.

const PLACE = "elenco.draft";
export const EMPTY = { workspace: "", name: "", text: "", saved: "", code: "", task: "", model: "", base_url: "", wire: "", trials: [] };

let key = "";

/** The key is in no storage: a reload forgets it. */
export function theKey() {
  return key;
}

export function setTheKey(text) {
  key = text;
}

export function kept() {
  try {
    return { ...EMPTY, ...JSON.parse(sessionStorage.getItem(PLACE) ?? "{}") };
  } catch {
    return EMPTY;
  }
}

export function keep(draft) {
  try {
    sessionStorage.setItem(PLACE, JSON.stringify(draft));
  } catch {
    // A full storage keeps no draft; the page has it all the same.
  }
}

/** The provider a model's name begins with; with an address of its own and no such name it is `server`. */
export function providerOf(model, base) {
  const cut = model.indexOf("/");
  if (cut > 0) return model.slice(0, cut);
  return base ? "server" : "";
}
