// Server-sent events cut out of the pieces in which their text arrives; pure.

/** Cut server-sent events out of pieces of text; `emit(name, lines)` gets one whole event each. */
export function splitter(emit) {
  let rest = "";
  return (text) => {
    const blocks = (rest + text).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      let name = "message";
      const lines = [];
      for (const line of block.split("\n")) {
        if (line.startsWith("data: ")) lines.push(line.slice(6));
        else if (line.startsWith("event: ")) name = line.slice(7);
      }
      if (lines.length) emit(name, lines);
    }
  };
}
