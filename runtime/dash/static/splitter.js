// Server-sent events cut out of the pieces in which their text arrives; pure.

/** Cut server-sent events out of pieces of text; `emit(name, data)` gets one whole event each. */
export function splitter(emit) {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let name = "message";
      let data = null;
      for (const line of block.split("\n")) {
        if (line.startsWith("data: ")) data = data === null ? line.slice(6) : `${data}\n${line.slice(6)}`;
        else if (line.startsWith("event: ")) name = line.slice(7);
      }
      if (data !== null) emit(name, data);
    }
  };
}
