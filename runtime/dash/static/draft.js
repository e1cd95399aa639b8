// The draft of the playground as this tab keeps it: its texts over a reload, its key only as long as the page lives.

const PLACE = "elenco.draft";
const EMPTY = { workspace: "", name: "", text: "", saved: "", code: "", task: "", model: "", base_url: "", wire: "", trials: [] };

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

/** The variable that the key of a model belongs into, "" for one that needs none; `providers` as the server tells them. */
export function keyVariable(model, base, providers) {
  const cut = model.indexOf("/");
  const provider = cut > 0 ? model.slice(0, cut) : base ? "server" : "";
  if (!provider || provider === "offline" || provider === "scripted") return "";
  const known = providers.find((each) => each.name === provider);
  return known ? known.variable ?? "" : `${provider.toUpperCase().replace(/[-.]/g, "_")}_API_KEY`;
}
